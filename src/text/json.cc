#include "text/json.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "text/json_element.h"
#include "text/json_writer.h"

namespace portico {
namespace {

// From here on an integer may be beyond int64.
constexpr size_t kBigDigits = 19;

// The text with 0.0 in the place of every integer of 19 digits or more, which go to `big`: simdjson
// refuses those beyond 64 bits.
std::string WithoutBigIntegers(std::string_view text, BigIntegers* big) {
  std::string out;
  out.reserve(text.size() + 64);
  size_t fractions = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (in_string && c == '\\' && i + 1 < text.size()) {
      out.append(text.substr(i, 2));
      i += 2;
      continue;
    }
    if (c == '"') in_string = !in_string;
    const bool digit = c >= '0' && c <= '9';
    if (in_string || !digit) {
      out.push_back(c);
      ++i;
      continue;
    }
    // A whole number, with its fraction and exponent.
    const size_t end = std::min(text.find_first_not_of("0123456789.eE+-", i), text.size());
    const std::string_view number = text.substr(i, end - i);
    const bool integer = number.find_first_not_of("0123456789") == std::string_view::npos;
    if (integer && number.size() >= kBigDigits && number.size() <= JsonBigInteger::kMaxDigits &&
        c != '0') {
      big->emplace_back(fractions++, (out.ends_with('-') ? "-" : "") + std::string(number));
      out.append("0.0");
    } else {
      fractions += number.find_first_of(".eE") != std::string_view::npos;
      out.append(number);
    }
    i = end;
  }
  return out;
}

}  // namespace

StatusOr<Json> Json::Parse(std::string_view text, const Limits& limits) {
  simdjson::dom::parser parser;
  if (auto error = parser.allocate(std::max<size_t>(text.size(), 64), limits.max_depth + 1)) {
    return Error(StatusCode::kResourceExhausted, simdjson::error_message(error));
  }
  simdjson::dom::element root;
  BigIntegers big;
  auto error = parser.parse(text.data(), text.size(), true).get(root);
  if (error == simdjson::NUMBER_ERROR) {
    const std::string smaller = WithoutBigIntegers(text, &big);
    error = parser.parse(smaller.data(), smaller.size(), true).get(root);
  }
  if (error == simdjson::DEPTH_ERROR) {
    return Error(
        StatusCode::kInvalidArgument,
        fmt::format("the JSON text is nested too deeply (more than {} levels)", limits.max_depth));
  }
  if (error) {
    return Error(StatusCode::kInvalidArgument, simdjson::error_message(error));
  }
  return JsonOf(root, big);
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
  } else if (is_big_int()) {
    out->append(as_big_int().text());
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
