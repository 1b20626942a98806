// Values of forms that have quotes around texts on every level.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "service/constraint/member_arguments.h"
#include "service/constraint/schema_words.h"

namespace portico {
namespace {

using parser::TypeSet;

constexpr size_t kMaxOpenSchemas = 12;  // in each other
constexpr int64_t kMaxListItems = 10000;
constexpr TypeSet kScalars =
    parser::kIntegerType | parser::kNumberType | parser::kBooleanType | parser::kNullType;

constexpr char kQuotedGrammar[] = R"(
value ::= text | number | "true" | "false" | "null" | object | list
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
number ::= integer ("." [0-9]{1,16})? ([eE] ("+" | "-")? [0-9]{1,2})?
object ::= "{" (member ("," member)*)? "}"
member ::= [a-zA-Z_] [a-zA-Z0-9_]{0,63} ":" value
list ::= "[" (value ("," value)*)? "]"
)";

}  // namespace

// Values are in each other to any depth, which only a grammar can say.
Json MemberArguments::AnyQuoted(TypeSet types) const {
  std::string ways;
  const auto add = [&](TypeSet type, std::string_view rule) {
    if (types != 0 && (types & type) == 0) return;
    ways += ways.empty() ? "" : " | ";
    ways += rule;
  };
  add(parser::kStringType, "text");
  add(parser::kNumberType, "number");
  if (types != 0 && (types & parser::kNumberType) == 0) add(parser::kIntegerType, "integer");
  add(parser::kBooleanType, R"("true" | "false")");
  add(parser::kNullType, R"("null")");
  add(parser::kObjectType, "object");
  add(parser::kArrayType, "list");
  std::string quote;
  for (const Json& piece : tags_.Literal(form_.quote)) {
    quote += piece.GetString("type") == "token"
                 ? fmt::format("Token({}) ", piece.GetInt("token", 0))
                 : Json(piece.GetString("value")).Dump() + " ";
  }
  std::string excludes;
  for (const std::string& text : excludes_) {
    excludes += (excludes.empty() ? "" : ", ") + Json(text).Dump();
  }
  std::string grammar = fmt::format(
      "root ::= {}\ntext ::= {}chars {}\nchars ::= TagDispatch(loop_after_dispatch=false, "
      "excludes=({})){}",
      ways, quote, quote, excludes, kQuotedGrammar);
  if (!budget_->Take(grammar.size())) return Json();
  return TagObject("grammar", {{"grammar", Json(std::move(grammar))}});
}

Json MemberArguments::Quoted(Json text) const {
  JsonArray parts = Literal(form_.quote);
  parts.push_back(std::move(text));
  for (Json& part : Literal(form_.quote)) parts.push_back(std::move(part));
  return TagSequence(std::move(parts));
}

Json MemberArguments::QuotedValue(const Json& given) {
  const Json& schema = Resolved(given);
  if (!Look(schema)) return Json();
  const TypeSet types = TypesOf(schema);
  if (types == 0) {
    exact_ = exact_ && SaysOnly(schema, {});
    return AnyQuoted(0);
  }
  // What holds itself has no end.
  const bool again = std::find(open_.begin(), open_.end(), &schema) != open_.end();
  if (again || open_.size() >= kMaxOpenSchemas || --left_ < 0) {
    exact_ = false;
    return AnyQuoted(types);
  }
  open_.push_back(&schema);
  Json value = QuotedWays(schema, types);
  open_.pop_back();
  return value;
}

Json MemberArguments::QuotedWays(const Json& schema, TypeSet types) {
  JsonArray ways;
  for (const char* const key : {"anyOf", "oneOf"}) {
    const Json* const choices = schema.Find(key);
    if (choices == nullptr || !choices->is_array() || choices->as_array().empty() ||
        !SaysOnly(schema, {key})) {
      continue;
    }
    exact_ = exact_ && std::string_view(key) == "anyOf";
    for (const Json& choice : choices->as_array()) ways.push_back(QuotedValue(choice));
    return TagChoice(std::move(ways));
  }
  if ((types & parser::kStringType) != 0) {
    ways.push_back(Quoted(Text(schema, parser::kStringType)));
  }
  if ((types & kScalars) != 0) ways.push_back(JsonOf(schema, types & kScalars));
  if ((types & parser::kObjectType) != 0) ways.push_back(QuotedObject(schema));
  if ((types & parser::kArrayType) != 0) ways.push_back(QuotedList(schema));
  return TagChoice(std::move(ways));
}

Json MemberArguments::QuotedObject(const Json& schema) {
  JsonArray parts = Literal("{");
  if (Json members = Members(schema); !members.is_null()) parts.push_back(std::move(members));
  for (Json& part : Literal("}")) parts.push_back(std::move(part));
  return TagSequence(std::move(parts));
}

Json MemberArguments::QuotedList(const Json& schema) {
  static const Json* const kAnyItem = new Json(true);
  // Nothing counts further, as in JSON.
  const auto count = [&](const char* key) {
    const Json* const given = schema.Find(key);
    if (given == nullptr) return int64_t{-1};
    if (given->is_int() && given->as_int() >= 0 && given->as_int() <= kMaxListItems) {
      return given->as_int();
    }
    exact_ = false;
    return int64_t{-1};
  };
  int64_t min = std::max<int64_t>(count("minItems"), 0);
  int64_t max = count("maxItems");
  if (max >= 0 && min > max) {
    exact_ = false;
    min = 0;
    max = -1;
  }
  exact_ = exact_ && SaysOnly(schema, {"type", "items", "minItems", "maxItems"});
  JsonArray parts = Literal("[");
  if (max != 0) {
    const Json* const items = schema.Find("items");
    const auto item = [&](const char* before) {
      JsonArray item_parts = Literal(before);
      item_parts.push_back(QuotedValue(items == nullptr ? *kAnyItem : *items));
      return TagSequence(std::move(item_parts));
    };
    JsonArray list;
    list.push_back(item(""));
    if (max < 0 && min <= 1) {
      list.push_back(TagStar(item(",")));
    } else if (max != 1) {
      Json more = TagObject("repeat", {{"min", Json(std::max<int64_t>(min - 1, 0))},
                                       {"max", Json(max < 0 ? int64_t{-1} : max - 1)}});
      more.Set("content", item(","));
      list.push_back(std::move(more));
    }
    Json items_part = TagSequence(std::move(list));
    parts.push_back(min > 0 ? std::move(items_part) : TagOptional(std::move(items_part)));
  }
  for (Json& part : Literal("]")) parts.push_back(std::move(part));
  return TagSequence(std::move(parts));
}

}  // namespace portico
