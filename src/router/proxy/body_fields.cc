#include "router/proxy/body_fields.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/json_writer.h"
#include "text/white_space.h"

namespace portico::router {
namespace {}  // namespace

Status CheckFields(simdjson::ondemand::parser& parser, const std::string& body,
                   std::span<const std::string_view> reserved) {
  simdjson::ondemand::document document;
  simdjson::ondemand::object object;
  if (body.empty() || body.capacity() < body.size() + simdjson::SIMDJSON_PADDING ||
      parser.iterate(body.data(), body.size(), body.capacity()).get(document) !=
          simdjson::SUCCESS ||
      document.get_object().get(object) != simdjson::SUCCESS) {
    return InvalidArgument("", "The body must be a JSON object.");
  }
  for (auto field : object) {
    std::string_view key;
    if (field.unescaped_key().get(key) != simdjson::SUCCESS) break;
    if (std::find(reserved.begin(), reserved.end(), key) != reserved.end()) {
      return InvalidArgument(key, fmt::format("`{}` is for the gateway to set.", key));
    }
  }
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
