#include "pipeline/stages/factory_arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace portico::pipeline {
namespace {

Status Bad(std::string_view key, std::string_view expected) {
  return Error(StatusCode::kInvalidArgument, fmt::format("factory.{} must be {}", key, expected));
}

}  // namespace

Status CheckArguments(const StageConfig& config, std::span<const std::string_view> known) {
  for (const auto& [key, value] : config.factory.as_object()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("factory has no `{}`; {}", key,
                             known.empty() ? std::string("it takes nothing")
                                           : fmt::format("it takes {}", fmt::join(known, ", "))));
  }
  return OkStatus();
}

Status ReadArgument(const StageConfig& config, std::string_view key, std::string* out) {
  const Json* value = config.factory.Find(key);
  if (value == nullptr || value->is_null()) return OkStatus();
  if (!value->is_string()) return Bad(key, "a text");
  *out = value->as_string();
  return OkStatus();
}

Status ReadArgument(const StageConfig& config, std::string_view key, double min, double max,
                    double* out) {
  const Json* value = config.factory.Find(key);
  if (value == nullptr || value->is_null()) return OkStatus();
  if (!value->is_number() || !(value->as_double() >= min && value->as_double() <= max)) {
    return Bad(key, fmt::format("a number in {}..{}", min, max));
  }
  *out = value->as_double();
  return OkStatus();
}

Status ReadArgument(const StageConfig& config, std::string_view key, bool* out) {
  const Json* value = config.factory.Find(key);
  if (value == nullptr || value->is_null()) return OkStatus();
  if (!value->is_bool()) return Bad(key, "true or false");
  *out = value->as_bool();
  return OkStatus();
}

Status ReadArgument(const StageConfig& config, std::string_view key,
                    std::vector<std::string>* out) {
  const Json* value = config.factory.Find(key);
  if (value == nullptr || value->is_null()) return OkStatus();
  if (!value->is_array()) return Bad(key, "a list of texts");
  for (const Json& one : value->as_array()) {
    if (!one.is_string()) return Bad(key, "a list of texts");
    out->push_back(one.as_string());
  }
  return OkStatus();
}

}  // namespace portico::pipeline
