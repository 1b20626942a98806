#include "router/proxy/body_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/json_writer.h"
#include "text/white_space.h"

namespace portico::router {
namespace {

using JsonValue = simdjson::ondemand::value;

constexpr std::string_view kPromptFields[] = {"text", "prompt", "input_ids", "input_embeds"};

template <size_t N>
bool IsField(std::string_view key, const std::string_view (&names)[N]) {
  return std::find(std::begin(names), std::end(names), key) != std::end(names);
}

int64_t CountOf(JsonValue value) {
  double count = 0;
  if (value.get_double().get(count) != simdjson::SUCCESS || !(count > 1)) return 1;
  return count < kMaxPairRooms ? static_cast<int64_t>(count) : kMaxPairRooms;
}

// A list of token ids is one prompt. One of rows of numbers may be several: more than enough does no harm.
int64_t PromptsOf(JsonValue value) {
  simdjson::ondemand::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) return 1;
  int64_t prompts = 0;
  for (auto item : list) {
    simdjson::ondemand::json_type type;
    if (item.type().get(type) != simdjson::SUCCESS) break;
    if (type == simdjson::ondemand::json_type::number) break;
    if (++prompts == kMaxPairRooms) break;
  }
  return std::max<int64_t>(1, prompts);
}

// SGLang's sampling_params: of all prompts, or a list with those of each.
int64_t ChoicesOf(JsonValue value) {
  const auto of = [](simdjson::ondemand::object object) -> int64_t {
    JsonValue n;
    return object.find_field_unordered("n").get(n) == simdjson::SUCCESS ? CountOf(n) : 1;
  };
  simdjson::ondemand::object object;
  if (value.get_object().get(object) == simdjson::SUCCESS) return of(object);
  simdjson::ondemand::array list;
  if (value.get_array().get(list) != simdjson::SUCCESS) return 1;
  int64_t most = 1;
  for (auto item : list) {
    if (item.get_object().get(object) != simdjson::SUCCESS) break;
    most = std::max(most, of(object));
  }
  return most;
}

}  // namespace

Status CheckFields(simdjson::ondemand::parser& parser, const std::string& body,
                   std::span<const std::string_view> reserved, int64_t* rooms) {
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  const auto broken = [] { return InvalidArgument("", "the body must be a JSON object"); };
  if (body.empty() || body.capacity() < body.size() + simdjson::SIMDJSON_PADDING ||
      parser.iterate(body.data(), body.size(), body.capacity()).get(document) !=
          simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS) {
    return broken();
  }
  int64_t prompts = 1;
  int64_t choices = 1;
  for (auto each : object) {
    // A reserved name may stand behind what cannot be read, and the worker may be able to read it.
    simdjson::ondemand::field field;
    if (std::move(each).get(field) != simdjson::SUCCESS) return broken();
    std::string_view key;
    // Half of a surrogate pair, which is in no name that is looked for.
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) continue;
    if (std::find(reserved.begin(), reserved.end(), key) != reserved.end()) {
      return InvalidArgument(key, fmt::format("`{}` is for the gateway to set", key));
    }
    if (rooms == nullptr) continue;
    const JsonValue value = field.value();
    if (key == "n" || key == "best_of") {
      choices = std::max(choices, CountOf(value));
    } else if (key == "sampling_params") {
      choices = std::max(choices, ChoicesOf(value));
    } else if (IsField(key, kPromptFields)) {
      prompts = std::max(prompts, PromptsOf(value));
    }
  }
  if (rooms != nullptr) *rooms = std::min(prompts * choices, kMaxPairRooms);
  return OkStatus();
}

std::string InsertFields(std::string_view body, std::string_view fields) {
  const size_t open = std::min(body.find('{'), body.size());
  const size_t next = body.find_first_not_of(kWhiteSpace, open + 1);
  const bool empty = next == std::string_view::npos || body[next] == '}';
  std::string made;
  made.reserve(body.size() + fields.size() + 2 + simdjson::SIMDJSON_PADDING);
  made.append(body.substr(0, open)).append("{").append(fields);
  if (!empty) made.push_back(',');
  if (open < body.size()) made.append(body.substr(open + 1));
  return made;
}

std::string PairFields(const WorkerSpec& prefill, int64_t room) {
  if (prefill.dp_rank >= 0) room += prefill.dp_rank - room % prefill.dp_size;
  std::string fields = "\"bootstrap_host\":";
  JsonWriter writer(&fields);
  writer.String(prefill.host);
  fields += prefill.bootstrap_port > 0
                ? fmt::format(",\"bootstrap_port\":{}", prefill.bootstrap_port)
                : ",\"bootstrap_port\":null";
  fmt::format_to(std::back_inserter(fields), ",\"bootstrap_room\":{}", room);
  if (prefill.dp_rank >= 0) {
    fmt::format_to(std::back_inserter(fields), ",\"disagg_prefill_dp_rank\":{}", prefill.dp_rank);
  }
  return fields;
}

std::string RankField(const WorkerSpec& worker) {
  return worker.dp_rank < 0 ? "" : fmt::format("\"data_parallel_rank\":{}", worker.dp_rank);
}

}  // namespace portico::router
