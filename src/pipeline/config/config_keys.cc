#include "pipeline/config/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

namespace portico::pipeline {
namespace {

struct KeyNotDone {
  std::string_view key;
  std::string_view why;
};

// Of sglang-omni, and not done here. docs/omni.md has the same list.
constexpr KeyNotDone kNotDone[] = {
    {"relay_backend", "the edge decides: by reference in a process, shared memory, or TCP"},
    {"relay", "the edge decides: by reference in a process, shared memory, or TCP"},
    {"comm", "sizes and credits of transports are fixed"},
    {"endpoints", "processes have socket pairs without names; hosts are in `processes`"},
    {"gpu_placement", "the GPUs of a stage are its `gpu`"},
    {"placement", "nothing here allots GPU memory; a stage's own factory does"},
    {"gpu_memory_fraction", "nothing here allots GPU memory; a stage's own factory does"},
    {"mps", "the GPU's daemon is started outside"},
    {"weight_share", "stages load their weights themselves"},
    {"tp_size", "a stage is one process; use a factory that starts its own ranks"},
    {"num_workers", "use `processes: {NAME: {num_replicas: N}}`"},
    {"engine", "use `factory`"},
    {"executor", "use `factory_path` and `factory`"},
    {"input_handler", "use `wait_for` and `merge_fn`"},
    {"get_next", "use `next` and `route_fn`"},
    {"terminal_stages", "use `terminal: true` of the stages"},
    {"terminal_stages_fn", "terminals that a request does not reach are not waited for"},
    {"audio_chunking", "portico.hear cuts at silences; portico.decode has `max_seconds`"},
    {"stream_delivery", "what waits for a client is bounded for each request"},
    {"services", "other servers are started outside; portico.http uses them"},
    {"http_routes", "stages have no routes of their own"},
    {"config_cls", "a pipeline is data; no class is loaded for it"},
    {"shared", "write the value into each stage, or use a YAML anchor"}};

}  // namespace

Status CheckKeys(const YAML::Node& map, std::span<const std::string_view> known,
                 const YamlFile& file) {
  std::set<std::string> seen;
  for (const auto& entry : map) {
    const std::string key = entry.first.Scalar();
    if (!seen.insert(key).second) {
      return file.Bad(entry.first, fmt::format("`{}` is set twice", key));
    }
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    // The key of a dotted flag stands in no text.
    const YAML::Node& at = entry.first.Mark().is_null() ? entry.second : entry.first;
    const auto* refused = std::find_if(std::begin(kNotDone), std::end(kNotDone),
                                       [&key](const KeyNotDone& one) { return one.key == key; });
    if (refused != std::end(kNotDone)) {
      return file.Bad(at, fmt::format("`{}` is not supported: {}", key, refused->why));
    }
    return file.Bad(at, fmt::format("unknown key `{}`; there are {}", key, fmt::join(known, ", ")));
  }
  return OkStatus();
}

}  // namespace portico::pipeline
