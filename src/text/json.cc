#include "text/json.h"

#include <simdjson.h>

#include <algorithm>

#include "text/json_writer.h"

namespace portico {
namespace {

using simdjson::dom::element;
using simdjson::dom::element_type;

StatusOr<Json> Convert(element from, size_t depth_left);

StatusOr<Json> ConvertArray(simdjson::dom::array from, size_t depth_left) {
  JsonArray array;
  array.reserve(from.size());
  for (element item : from) {
    PORTICO_ASSIGN_OR_RETURN(Json value, Convert(item, depth_left));
    array.push_back(std::move(value));
  }
  return Json(std::move(array));
}

StatusOr<Json> ConvertObject(simdjson::dom::object from, size_t depth_left) {
  JsonObject object;
  object.reserve(from.size());
  for (auto [key, item] : from) {
    PORTICO_ASSIGN_OR_RETURN(Json value, Convert(item, depth_left));
    object.emplace_back(std::string(key), std::move(value));
  }
  if (object.size() < 2) return Json(std::move(object));

  // Doubled keys: found by sorting, so that a hostile object of many members costs n log n.
  std::vector<size_t> order(object.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return object[a].first != object[b].first ? object[a].first < object[b].first : a < b;
  });
  std::vector<bool> dropped(object.size());
  bool any = false;
  for (size_t i = 0; i + 1 < order.size();) {
    size_t end = i + 1;
    while (end < order.size() && object[order[end]].first == object[order[i]].first) ++end;
    if (end - i > 1) {
      any = true;
      object[order[i]].second = std::move(object[order[end - 1]].second);
      for (size_t j = i + 1; j < end; ++j) dropped[order[j]] = true;
    }
    i = end;
  }
  if (any) {
    JsonObject kept;
    for (size_t i = 0; i < object.size(); ++i) {
      if (!dropped[i]) kept.push_back(std::move(object[i]));
    }
    object = std::move(kept);
  }
  return Json(std::move(object));
}

StatusOr<Json> Convert(element from, size_t depth_left) {
  if (depth_left == 0) {
    return Error(StatusCode::kInvalidArgument, "the JSON text is nested too deeply");
  }
  switch (from.type()) {
    case element_type::ARRAY:
      return ConvertArray(simdjson::dom::array(from), depth_left - 1);
    case element_type::OBJECT:
      return ConvertObject(simdjson::dom::object(from), depth_left - 1);
    case element_type::INT64:
      return Json(int64_t(from));
    case element_type::UINT64:
      return Json(static_cast<double>(uint64_t(from)));
    case element_type::DOUBLE:
      return Json(double(from));
    case element_type::STRING:
      return Json(std::string_view(from));
    case element_type::BOOL:
      return Json(bool(from));
    case element_type::NULL_VALUE:
      return Json();
  }
  return Error(StatusCode::kInternal, "unknown JSON type");
}

}  // namespace

StatusOr<Json> Json::Parse(std::string_view text, const Limits& limits) {
  simdjson::dom::parser parser;
  if (auto error = parser.allocate(std::max<size_t>(text.size(), 64), limits.max_depth + 1)) {
    return Error(StatusCode::kResourceExhausted, simdjson::error_message(error));
  }
  element root;
  if (auto error = parser.parse(text.data(), text.size(), true).get(root)) {
    return Error(StatusCode::kInvalidArgument, simdjson::error_message(error));
  }
  return Convert(root, limits.max_depth + 1);
}

const Json* Json::Find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : as_object()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json* Json::Find(std::string_view key) {
  return const_cast<Json*>(static_cast<const Json*>(this)->Find(key));
}

void Json::Set(std::string_view key, Json value) {
  if (Json* member = Find(key)) {
    *member = std::move(value);
  } else {
    as_object().emplace_back(std::string(key), std::move(value));
  }
}

std::string Json::GetString(std::string_view key, std::string_view fallback) const {
  const Json* member = Find(key);
  return member && member->is_string() ? member->as_string() : std::string(fallback);
}

int64_t Json::GetInt(std::string_view key, int64_t fallback) const {
  const Json* member = Find(key);
  return member && member->is_int() ? member->as_int() : fallback;
}

double Json::GetDouble(std::string_view key, double fallback) const {
  const Json* member = Find(key);
  return member && member->is_number() ? member->as_double() : fallback;
}

bool Json::GetBool(std::string_view key, bool fallback) const {
  const Json* member = Find(key);
  return member && member->is_bool() ? member->as_bool() : fallback;
}

std::string Json::Dump() const {
  std::string out;
  DumpTo(&out);
  return out;
}

void Json::DumpTo(std::string* out) const {
  if (is_null()) {
    out->append("null");
  } else if (is_bool()) {
    out->append(as_bool() ? "true" : "false");
  } else if (is_int()) {
    AppendJsonInt(as_int(), out);
  } else if (is_double()) {
    AppendJsonDouble(as_double(), out);
  } else if (is_string()) {
    AppendJsonString(as_string(), out);
  } else if (is_array()) {
    out->push_back('[');
    bool first = true;
    for (const Json& item : as_array()) {
      if (!first) out->push_back(',');
      first = false;
      item.DumpTo(out);
    }
    out->push_back(']');
  } else {
    out->push_back('{');
    bool first = true;
    for (const auto& [key, item] : as_object()) {
      if (!first) out->push_back(',');
      first = false;
      AppendJsonString(key, out);
      out->push_back(':');
      item.DumpTo(out);
    }
    out->push_back('}');
  }
}

}  // namespace portico
