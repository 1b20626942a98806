#define PCRE2_CODE_UNIT_WIDTH 8
#include "grammar/schema/validate.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <memory>
#include <string>

#include "grammar/schema/formats.h"
#include "grammar/schema/keywords.h"
#include "grammar/schema/number_range.h"
#include "grammar/schema/pattern.h"
#include "text/utf8.h"

namespace portico::grammar {
namespace {

constexpr int kMaxDepth = 64;

class Validator {
 public:
  Validator(const SchemaDocument& document, const Json* schema, const Json& value, int depth)
      : document_(document), schema_(schema), value_(value), depth_(depth) {}

  StatusOr<bool> Run() {
    if (schema_->is_bool()) return schema_->as_bool();
    if (depth_ > kMaxDepth) return document_.Refused(schema_, "$ref", "goes too deep");
    PORTICO_RETURN_IF_ERROR(CheckKeywords(document_, schema_));
    for (const auto& [key, argument] : schema_->as_object()) {
      PORTICO_ASSIGN_OR_RETURN(const bool good, Keyword(key, argument));
      if (!good) return false;
    }
    return true;
  }

 private:
  StatusOr<bool> Check(const Json& schema, const Json& value) const {
    return Satisfies(document_, &schema, value, depth_ + 1);
  }

  StatusOr<bool> Keyword(std::string_view key, const Json& argument) {
    if (key == "type") {
      PORTICO_ASSIGN_OR_RETURN(const uint8_t types, TypesOf(document_, schema_));
      return (types & TypeOfValue(value_)) != 0;
    }
    if (key == "const") return SameValue(argument, value_);
    if (key == "enum") {
      return std::any_of(argument.as_array().begin(), argument.as_array().end(),
                         [this](const Json& one) { return SameValue(one, value_); });
    }
    if (key == "$ref") {
      PORTICO_ASSIGN_OR_RETURN(const Json* const target,
                               document_.Resolve(schema_, argument.as_string()));
      return Check(*target, value_);
    }
    if (key == "allOf" || key == "anyOf" || key == "oneOf") return Count(key, argument);
    if (key == "not") {
      PORTICO_ASSIGN_OR_RETURN(const bool inside, Check(argument, value_));
      return !inside;
    }
    if (key == "if") return Conditional(argument);
    if (value_.is_number()) return Number(key, argument);
    if (value_.is_string()) return Text(key, argument);
    if (value_.is_array()) return Array(key, argument);
    if (value_.is_object()) return Object(key, argument);
    return true;
  }

  StatusOr<bool> Count(std::string_view key, const Json& schemas) {
    size_t good = 0;
    for (const Json& schema : schemas.as_array()) {
      PORTICO_ASSIGN_OR_RETURN(const bool one, Check(schema, value_));
      good += one;
    }
    if (key == "allOf") return good == schemas.as_array().size();
    return key == "anyOf" ? good > 0 : good == 1;
  }

  StatusOr<bool> Conditional(const Json& condition) {
    PORTICO_ASSIGN_OR_RETURN(const bool holds, Check(condition, value_));
    const Json* const branch = schema_->Find(holds ? "then" : "else");
    if (branch == nullptr) return true;
    return Check(*branch, value_);
  }

  StatusOr<bool> Number(std::string_view key, const Json& argument) {
    if (key != "minimum" && key != "maximum" && key != "exclusiveMinimum" &&
        key != "exclusiveMaximum" && key != "multipleOf") {
      return true;
    }
    const auto bound = Decimal::Of(argument);
    const auto number = Decimal::Of(value_);
    if (!bound || !number) return document_.Refused(schema_, key, "the number is too long");
    if (key == "multipleOf") {
      if (!argument.is_int() || !value_.is_int() || argument.as_int() <= 0) {
        return document_.Refused(schema_, key, "only positive integers are supported");
      }
      return value_.as_int() % argument.as_int() == 0;
    }
    const int order = Decimal::Compare(*number, *bound);
    if (key == "minimum") return order >= 0;
    if (key == "maximum") return order <= 0;
    return key == "exclusiveMinimum" ? order > 0 : order < 0;
  }

  // Of a keyword that counts.
  StatusOr<bool> Bounds(std::string_view key, std::string_view low, std::string_view high,
                        size_t size) {
    if (key != low && key != high) return true;
    PORTICO_ASSIGN_OR_RETURN(const auto bound, CountOf(document_, schema_, key));
    const auto count = static_cast<int64_t>(size);
    return key == low ? count >= *bound : count <= *bound;
  }

  StatusOr<bool> Text(std::string_view key, const Json& argument) {
    if (key == "pattern") {
      auto matched = MatchesPattern(argument.as_string(), value_.as_string());
      if (!matched.ok()) {
        return document_.Refused(schema_, key, MessageOf(matched.status()));
      }
      return *matched;
    }
    if (key == "format") return HasFormat(argument.as_string());
    return Bounds(key, "minLength", "maxLength", CountCodePoints(value_.as_string()));
  }

  // The patterns of some formats do not match all of their texts: what those do not match cannot be decided.
  StatusOr<bool> HasFormat(const std::string& format) {
    const std::string_view pattern = FormatPattern(format);
    if (pattern.empty()) {
      return document_.Refused(schema_, "format",
                               fmt::format("the format {} is not supported", Json(format).Dump()));
    }
    auto matched = MatchesPattern(pattern, value_.as_string());
    if (!matched.ok()) return document_.Refused(schema_, "format", MessageOf(matched.status()));
    if (*matched || FormatPatternIsWhole(format)) return *matched;
    return document_.Refused(schema_, "format",
                             fmt::format("whether {} has the format {} cannot be decided",
                                         value_.Dump(), Json(format).Dump()));
  }

  StatusOr<bool> Array(std::string_view key, const Json& argument) {
    const JsonArray& items = value_.as_array();
    if (key == "contains" || key == "minContains" || key == "maxContains" ||
        (key == "uniqueItems" && argument.as_bool())) {
      return document_.Refused(schema_, key, "is not supported");
    }
    size_t prefix = 0;
    const Json* const first = schema_->Find("prefixItems");
    if (first != nullptr && first->is_array()) prefix = first->as_array().size();
    if (key == "prefixItems" || (key == "items" && argument.is_array())) {
      for (size_t i = 0; i < items.size() && i < argument.as_array().size(); ++i) {
        PORTICO_ASSIGN_OR_RETURN(const bool good, Check(argument.as_array()[i], items[i]));
        if (!good) return false;
      }
      return true;
    }
    if (key == "items" || key == "additionalItems") {
      if (key == "additionalItems") {
        const Json* const fixed = schema_->Find("items");
        if (fixed == nullptr || !fixed->is_array()) return true;
        prefix = fixed->as_array().size();
      }
      for (size_t i = prefix; i < items.size(); ++i) {
        PORTICO_ASSIGN_OR_RETURN(const bool good, Check(argument, items[i]));
        if (!good) return false;
      }
      return true;
    }
    return Bounds(key, "minItems", "maxItems", items.size());
  }

  StatusOr<bool> Object(std::string_view key, const Json& argument) {
    if (key == "required") {
      return std::all_of(
          argument.as_array().begin(), argument.as_array().end(),
          [this](const Json& name) { return value_.Find(name.as_string()) != nullptr; });
    }
    if (key == "properties") {
      for (const auto& [name, schema] : argument.as_object()) {
        const Json* const member = value_.Find(name);
        if (member == nullptr) continue;
        PORTICO_ASSIGN_OR_RETURN(const bool good, Check(schema, *member));
        if (!good) return false;
      }
      return true;
    }
    if (key == "additionalProperties" && schema_->Find("patternProperties") == nullptr) {
      const Json* const properties = schema_->Find("properties");
      for (const auto& [name, member] : value_.as_object()) {
        if (properties != nullptr && properties->Find(name) != nullptr) continue;
        PORTICO_ASSIGN_OR_RETURN(const bool good, Check(argument, member));
        if (!good) return false;
      }
      return true;
    }
    if (key == "propertyNames") {
      for (const auto& [name, member] : value_.as_object()) {
        PORTICO_ASSIGN_OR_RETURN(const bool good, Check(argument, Json(name)));
        if (!good) return false;
      }
      return true;
    }
    if (key == "additionalProperties" || key == "patternProperties" || key == "dependentSchemas" ||
        key == "dependentRequired" || key == "dependencies" || key == "unevaluatedProperties") {
      return document_.Refused(schema_, key, "is not supported beside const or enum");
    }
    return Bounds(key, "minProperties", "maxProperties", value_.as_object().size());
  }

  const SchemaDocument& document_;
  const Json* schema_;
  const Json& value_;
  int depth_;
};

}  // namespace

StatusOr<bool> Satisfies(const SchemaDocument& document, const Json* schema, const Json& value,
                         int depth) {
  return Validator(document, schema, value, depth).Run();
}

StatusOr<bool> MatchesPattern(std::string_view pattern, std::string_view text) {
  const auto known = PatternInside(pattern);
  if (!known.ok()) return known.status();
  int error = 0;
  size_t offset = 0;
  const std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                    PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_BSUX | PCRE2_NEVER_UCP |
                        PCRE2_ALLOW_EMPTY_CLASS,
                    &error, &offset, nullptr),
      pcre2_code_free);
  if (code == nullptr) return Error(StatusCode::kUnimplemented, "the pattern cannot be decided");
  const std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  pcre2_set_match_limit(context.get(), 100000);
  const int found = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                0, 0, data.get(), context.get());
  if (found >= 0) return true;
  if (found == PCRE2_ERROR_NOMATCH) return false;
  return Error(StatusCode::kUnimplemented, "the pattern takes too long to decide");
}

}  // namespace portico::grammar
