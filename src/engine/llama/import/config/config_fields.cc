#include "engine/llama/import/config/config_fields.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/llama/import/files/file.h"

namespace portico::llama {

const Json* ConfigFields::Find(std::string_view name) const {
  const Json* member = object_.Find(name);
  return member == nullptr || member->is_null() ? nullptr : member;
}

Status ConfigFields::Bad(std::string_view name, const std::string& fault) const {
  return BadFile(path_, fmt::format("{}{} {}", prefix_, name, fault));
}

void ConfigFields::Int(std::string_view name, int64_t* value, int64_t min, int64_t max) {
  const Json* member = Find(name);
  if (member == nullptr || !status_.ok()) return;
  if (!member->is_int() || member->as_int() < min || member->as_int() > max) {
    status_ = Bad(name, fmt::format("must be a whole number from {} to {}, not {}", min, max,
                                    member->Dump()));
    return;
  }
  *value = member->as_int();
}

void ConfigFields::Number(std::string_view name, double* value) {
  const Json* member = Find(name);
  if (member == nullptr || !status_.ok()) return;
  if (!member->is_number() || !std::isfinite(member->as_double()) || member->as_double() <= 0) {
    status_ = Bad(name, fmt::format("must be a number above 0, not {}", member->Dump()));
    return;
  }
  *value = member->as_double();
}

void ConfigFields::Bool(std::string_view name, bool* value) {
  const Json* member = Find(name);
  if (member == nullptr || !status_.ok()) return;
  if (!member->is_bool()) {
    status_ = Bad(name, fmt::format("must be true or false, not {}", member->Dump()));
    return;
  }
  *value = member->as_bool();
}

void ConfigFields::Text(std::string_view name, std::string* value) {
  const Json* member = Find(name);
  if (member == nullptr || !status_.ok()) return;
  if (!member->is_string()) {
    status_ = Bad(name, fmt::format("must be a string, not {}", member->Dump()));
    return;
  }
  *value = member->as_string();
}

StatusOr<Json> ParseConfigJson(const std::string& text, const std::string& path) {
  StatusOr<Json> json = Json::Parse(text);
  if (!json.ok()) return BadFile(path, "is not JSON: " + std::string(MessageOf(json.status())));
  if (!json->is_object()) return BadFile(path, "is not a JSON object");
  return json;
}

}  // namespace portico::llama
