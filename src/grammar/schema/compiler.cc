#include "grammar/schema/compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/schema/document.h"
#include "grammar/schema/validate.h"

namespace portico::grammar {
namespace {

constexpr size_t kMaxFlat = 256;
constexpr size_t kMaxEnum = 5000;

void Insert(Parts* parts, Part part) {
  const auto at = std::lower_bound(parts->begin(), parts->end(), part);
  if (at == parts->end() || *at != part) parts->insert(at, part);
}

constexpr TypeBit kTypes[] = {kObject, kArray, kString, kInteger, kBoolean, kNull};

// Where schemas that hold at once allow nothing: the keyword of one of them that says most, and that schema.
std::pair<const Json*, std::string_view> LimitOf(const Parts& parts) {
  for (const char* const keyword : {"const",       "enum",
                                    "minimum",     "exclusiveMinimum",
                                    "maximum",     "exclusiveMaximum",
                                    "minLength",   "format",
                                    "pattern",     "minItems",
                                    "allOf",       "anyOf",
                                    "oneOf",       "$ref",
                                    "not",         "items",
                                    "prefixItems", "contains",
                                    "required",    "minProperties",
                                    "properties",  "type"}) {
    for (const Part& part : parts) {
      if (part.schema->is_object() && part.schema->Find(keyword) != nullptr) {
        return {part.schema, keyword};
      }
    }
  }
  return {nullptr, {}};
}

}  // namespace

SchemaCompiler::SchemaCompiler(Json schema, const SchemaOptions& options)
    : document_(std::move(schema)), options_(options) {}

StatusOr<std::string> SchemaCompiler::Run() {
  const int32_t root = rules_.Add("root");
  space_.allowed = !options_.compact;
  const Parts all{{document_.root(), 0}};
  rule_of_.emplace(all, root);
  todo_.emplace_back(root, all);
  while (!todo_.empty()) {
    const auto [rule, parts] = std::move(todo_.front());
    todo_.pop_front();
    PORTICO_ASSIGN_OR_RETURN(Expr body, Build(parts));
    rules_.Set(rule, std::move(body));
    if (rules_.size() > options_.max_rules) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("it needs more than {} rules", options_.max_rules));
    }
  }
  PORTICO_RETURN_IF_ERROR(CheckSatisfiable());
  return rules_.Print(options_.escape_less);
}

// Names the innermost schema that makes it so.
Status SchemaCompiler::CheckSatisfiable() {
  const std::vector<int32_t> way = rules_.Unsatisfied();
  const Json* schema = nullptr;
  std::string_view keyword;
  for (const int32_t rule : way) {
    for (const auto& [parts, own] : rule_of_) {
      if (own != rule) continue;
      const auto [found, key] = LimitOf(parts);
      if (found != nullptr) schema = found, keyword = key;
    }
  }
  if (schema == nullptr) return OkStatus();
  return document_.Refused(schema, keyword, "nothing can satisfy it");
}

StatusOr<int32_t> SchemaCompiler::RuleOf(Parts parts) {
  const auto [found, added] = rule_of_.try_emplace(parts, 0);
  if (added) {
    found->second = rules_.Add("value");
    todo_.emplace_back(found->second, std::move(parts));
  }
  return found->second;
}

StatusOr<Expr> SchemaCompiler::ValueOf(Parts parts) {
  std::erase_if(parts, [](const Part& part) {
    return (part.schema->is_bool() && part.schema->as_bool()) ||
           (part.schema->is_object() && part.schema->as_object().empty());
  });
  for (const Part& part : parts) {
    if (part.schema->is_bool()) return Expr::Never();
  }
  if (parts.empty()) return AnyValue();
  PORTICO_ASSIGN_OR_RETURN(const int32_t rule, RuleOf(std::move(parts)));
  return Expr::Rule(rule);
}

StatusOr<int32_t> SchemaCompiler::Shared(std::string_view name, Expr body) {
  const int32_t rule = rules_.Add(name);
  rules_.Set(rule, std::move(body));
  return rule;
}

StatusOr<std::optional<Parts>> SchemaCompiler::Flatten(Parts parts) const {
  Parts flat;
  std::vector<const Json*> followed;
  while (!parts.empty()) {
    Part part = parts.back();
    parts.pop_back();
    if (part.schema->is_bool()) {
      if (!part.schema->as_bool()) return std::nullopt;
      continue;
    }
    if (!part.schema->is_object()) {
      return document_.Refused(part.schema, "schema", "must be an object or a boolean");
    }
    PORTICO_RETURN_IF_ERROR(CheckKeywords(document_, part.schema));
    const Json* const reference = part.schema->Find("$ref");
    const Json* const all = part.schema->Find("allOf");
    const bool expands = (reference != nullptr && !(part.done & kRefDone)) ||
                         (all != nullptr && !(part.done & kAllOfDone));
    if (expands) {
      // Twice in one value, without a level between: it would never end.
      if (std::count(followed.begin(), followed.end(), part.schema) > 8) {
        return document_.Refused(part.schema, reference != nullptr ? "$ref" : "allOf",
                                 "consists of itself, without end");
      }
      followed.push_back(part.schema);
    }
    if (reference != nullptr && !(part.done & kRefDone)) {
      PORTICO_ASSIGN_OR_RETURN(const Json* const target,
                               document_.Resolve(part.schema, reference->as_string()));
      parts.push_back({target, 0});
    }
    if (all != nullptr && !(part.done & kAllOfDone)) {
      for (const Json& inside : all->as_array()) parts.push_back({&inside, 0});
    }
    part.done |= kRefDone | kAllOfDone;
    Insert(&flat, part);
    if (flat.size() + parts.size() > kMaxFlat) {
      return document_.Refused(part.schema, "allOf", "too many schemas hold at once");
    }
  }
  return flat;
}

StatusOr<Expr> SchemaCompiler::Build(const Parts& parts) {
  PORTICO_ASSIGN_OR_RETURN(const auto flat, Flatten(parts));
  if (!flat) return Expr::Never();
  if (flat->empty()) return AnyValue();
  PORTICO_ASSIGN_OR_RETURN(auto finite, Finite(*flat));
  if (finite) return std::move(*finite);
  PORTICO_ASSIGN_OR_RETURN(auto choices, Choices(*flat));
  if (choices) return std::move(*choices);
  uint8_t types = kAnyType;
  for (const Part& part : *flat) {
    PORTICO_ASSIGN_OR_RETURN(const uint8_t own, TypesOf(document_, part.schema));
    types &= own;
  }
  std::vector<Expr> ways;
  for (const TypeBit type : kTypes) {
    const bool wanted = type == kInteger ? (types & kNumber) != 0 : (types & type) != 0;
    if (!wanted) continue;
    PORTICO_ASSIGN_OR_RETURN(Expr way, OfType(*flat, type, types));
    ways.push_back(std::move(way));
  }
  return Expr::Choice(std::move(ways));
}

// With const or enum the values are few: each is held against all schemas.
StatusOr<std::optional<Expr>> SchemaCompiler::Finite(const Parts& parts) {
  const Json* values = nullptr;
  const Json* one = nullptr;
  for (const Part& part : parts) {
    if (const Json* const constant = part.schema->Find("const")) one = constant;
    if (const Json* const list = part.schema->Find("enum")) values = list;
  }
  if (one == nullptr && values == nullptr) return std::nullopt;
  std::vector<const Json*> candidates;
  if (one != nullptr) {
    candidates.push_back(one);
  } else {
    for (const Json& value : values->as_array()) candidates.push_back(&value);
  }
  if (candidates.size() > kMaxEnum) {
    return document_.Refused(parts[0].schema, "enum", fmt::format("more than {} values", kMaxEnum));
  }
  std::vector<Expr> ways;
  for (const Json* const value : candidates) {
    bool good = true;
    for (const Part& part : parts) {
      PORTICO_ASSIGN_OR_RETURN(good, Satisfies(document_, part.schema, *value));
      if (!good) break;
    }
    if (good) ways.push_back(JsonValue(*value, space_));
  }
  return Expr::Choice(std::move(ways));
}

// The branches of the first choice that is left in the schema, which is marked as done; nullopt: none is left.
StatusOr<std::optional<std::vector<const Json*>>> SchemaCompiler::BranchesOf(Part* part) {
  const Json* const schema = part->schema;
  const auto all_of = [](const Json* list) {
    std::vector<const Json*> branches;
    for (const Json& branch : list->as_array()) branches.push_back(&branch);
    return branches;
  };
  if (const Json* const any = schema->Find("anyOf"); any && !(part->done & kAnyOfDone)) {
    part->done |= kAnyOfDone;
    return all_of(any);
  }
  if (schema->Find("oneOf") != nullptr && !(part->done & kOneOfDone)) {
    part->done |= kOneOfDone;
    PORTICO_ASSIGN_OR_RETURN(std::vector<const Json*> branches, OneOfBranches(schema));
    return branches;
  }
  const Json* const negated = schema->Find("not");
  if (negated != nullptr && !(part->done & kNotDone)) {
    part->done |= kNotDone;
    if (IsNotConstant(*negated)) {
      return document_.Refused(schema, "not", "constants can be left out of an enum only");
    }
    PORTICO_ASSIGN_OR_RETURN(Json rest, Negated(document_, negated));
    return std::vector<const Json*>{
        document_.Derived(schema, "not", [&rest] { return std::move(rest); })};
  }
  const Json* const condition = schema->Find("if");
  if (condition != nullptr && !(part->done & kIfDone)) {
    part->done |= kIfDone;
    const Json* const then = schema->Find("then");
    const Json* const otherwise = schema->Find("else");
    if (then == nullptr && otherwise == nullptr) return std::vector<const Json*>{};
    PORTICO_ASSIGN_OR_RETURN(Json fails, Negated(document_, condition));
    const auto both = [](Json first, const Json* second) {
      JsonArray list{std::move(first)};
      if (second != nullptr) list.push_back(*second);
      JsonObject object;
      object.emplace_back("allOf", Json(std::move(list)));
      return Json(std::move(object));
    };
    return std::vector<const Json*>{
        document_.Derived(schema, "then", [&] { return both(*condition, then); }),
        document_.Derived(schema, "else", [&] { return both(std::move(fails), otherwise); })};
  }
  if (!(part->done & kDependentDone)) {
    size_t count = 0;
    PORTICO_ASSIGN_OR_RETURN(std::vector<const Json*> branches, DependentBranches(schema, &count));
    part->done |= kDependentDone;
    if (count > 0) return branches;
  }
  return std::nullopt;
}

StatusOr<std::optional<Expr>> SchemaCompiler::Choices(const Parts& parts) {
  for (size_t i = 0; i < parts.size(); ++i) {
    Part part = parts[i];
    PORTICO_ASSIGN_OR_RETURN(const auto branches, BranchesOf(&part));
    if (!branches) continue;
    Parts rest = parts;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
    Insert(&rest, part);
    branches_ += static_cast<int32_t>(branches->size());
    if (branches_ > options_.max_branches) {
      return document_.Refused(part.schema, "anyOf",
                               fmt::format("more than {} branches", options_.max_branches));
    }
    // `if` without `then` and `else` says nothing.
    if (branches->empty() && part.schema->Find("anyOf") == nullptr) {
      PORTICO_ASSIGN_OR_RETURN(Expr same, ValueOf(std::move(rest)));
      return same;
    }
    std::vector<Expr> ways;
    for (const Json* const branch : *branches) {
      Parts with = rest;
      Insert(&with, {branch, 0});
      PORTICO_ASSIGN_OR_RETURN(Expr way, ValueOf(std::move(with)));
      ways.push_back(std::move(way));
    }
    return Expr::Choice(std::move(ways));
  }
  return std::nullopt;
}

StatusOr<Expr> SchemaCompiler::OfType(const Parts& parts, TypeBit type, uint8_t types) {
  switch (type) {
    case kNull:
      return Expr::Text("null");
    case kBoolean:
      return Expr::Choice({Expr::Text("true"), Expr::Text("false")});
    case kString:
      return StringOf(parts);
    case kArray:
      return ArrayOf(parts);
    case kObject:
      return ObjectOf(parts);
    default:
      return NumberOf(parts, (types & kFraction) == 0);
  }
}

StatusOr<std::string> JsonSchemaToEbnf(std::string_view schema, const SchemaOptions& options) {
  if (schema.size() > options.max_bytes) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("it has more than {} bytes", options.max_bytes));
  }
  PORTICO_ASSIGN_OR_RETURN(
      Json parsed, Json::Parse(schema, Json::Limits{.max_depth = options.max_json_depth()}));
  if (!parsed.is_object() && !parsed.is_bool()) {
    return Error(StatusCode::kInvalidArgument, "it must be an object or a boolean");
  }
  if (NestingOf(parsed) > options.max_depth) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("its schemas are nested more than {} deep", options.max_depth));
  }
  return SchemaCompiler(std::move(parsed), options).Run();
}

}  // namespace portico::grammar
