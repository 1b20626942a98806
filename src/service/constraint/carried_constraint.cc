#include "service/constraint/carried_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "text/json.h"
#include "text/utf8.h"

namespace portico {
namespace {

constexpr size_t kMaxBytes = 256 << 10;
constexpr size_t kMaxDepth = 64;
constexpr int kMaxBrackets = 200;  // open at once, in patterns and grammars

// Keywords whose value maps names to schemas, and those whose value is no schema.
constexpr std::array<std::string_view, 6> kMaps = {
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"};
constexpr std::array<std::string_view, 5> kValues = {"const", "default", "enum", "example",
                                                     "examples"};

template <size_t kSize>
bool Has(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether each schema that declares properties says itself whether there may be others.
bool SaysOthers(const Json& schema) {
  if (schema.is_array()) {
    return std::all_of(schema.as_array().begin(), schema.as_array().end(), SaysOthers);
  }
  if (!schema.is_object()) return true;
  if (schema.Find("properties") != nullptr && schema.Find("additionalProperties") == nullptr &&
      schema.Find("unevaluatedProperties") == nullptr) {
    return false;
  }
  for (const auto& [key, value] : schema.as_object()) {
    if (Has(kValues, key)) continue;
    if (Has(kMaps, key) && value.is_object()) {
      for (const auto& [name, inner] : value.as_object()) {
        if (!SaysOthers(inner)) return false;
      }
    } else if (!SaysOthers(value)) {
      return false;
    }
  }
  return true;
}

int MostBrackets(std::string_view text) {
  int open = 0;
  int most = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\') {
      ++i;
    } else if (c == '(' || c == '[' || c == '{') {
      most = std::max(most, ++open);
    } else if ((c == ')' || c == ']' || c == '}') && open > 0) {
      --open;
    }
  }
  return most;
}

}  // namespace

Status CheckCarried(const Constraint& constraint) {
  const auto refused = [&constraint](std::string_view why) {
    return InvalidArgument(constraint.field, fmt::format("{} {}", constraint.field, why));
  };
  if (!IsValidUtf8(constraint.text)) return refused("must be valid UTF-8");
  if (constraint.text.size() > kMaxBytes) {
    return refused(fmt::format("must not be longer than {} bytes", kMaxBytes));
  }
  if (constraint.compact) {
    return refused("cannot forbid white space: this model's engine compiles grammars itself");
  }
  if (constraint.kind == ConstraintKind::kRegex || constraint.kind == ConstraintKind::kEbnf) {
    if (MostBrackets(constraint.text) > kMaxBrackets) return refused("is nested too deep");
    return OkStatus();
  }
  if (constraint.kind == ConstraintKind::kJsonObject ||
      constraint.kind == ConstraintKind::kReasoning) {
    return OkStatus();
  }
  Json::Limits limits;
  limits.max_depth = kMaxDepth;
  const StatusOr<Json> json = Json::Parse(constraint.text, limits);
  if (!json.ok()) return refused(fmt::format("is not JSON: {}", MessageOf(json.status())));
  if (constraint.kind == ConstraintKind::kChoice) return OkStatus();
  if (!json->is_object() && !(json->is_bool() && constraint.kind == ConstraintKind::kJsonSchema)) {
    return refused("must be a JSON object");
  }
  if (constraint.closed && !SaysOthers(*json)) {
    return refused(
        "is strict: each object with properties must say additionalProperties itself, because this "
        "model's engine takes a schema as it stands");
  }
  return OkStatus();
}

}  // namespace portico
