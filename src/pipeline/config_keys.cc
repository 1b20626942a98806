#include "pipeline/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

namespace portico::pipeline {
namespace {

// Of sglang-omni, and not done here.
constexpr std::string_view kNotDone[] = {"relay_backend",
                                         "endpoints",
                                         "gpu_placement",
                                         "placement",
                                         "terminal_stages",
                                         "terminal_stages_fn",
                                         "mps",
                                         "services",
                                         "audio_chunking",
                                         "stream_delivery",
                                         "weight_share",
                                         "config_cls",
                                         "tp_size",
                                         "gpu_memory_fraction",
                                         "engine",
                                         "comm",
                                         "num_workers",
                                         "executor",
                                         "input_handler",
                                         "get_next",
                                         "relay",
                                         "http_routes",
                                         "shared"};

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
    if (std::find(std::begin(kNotDone), std::end(kNotDone), key) != std::end(kNotDone)) {
      return file.Bad(at, fmt::format("`{}` is not supported", key));
    }
    return file.Bad(at, fmt::format("unknown key `{}`; there are {}", key, fmt::join(known, ", ")));
  }
  return OkStatus();
}

}  // namespace portico::pipeline
