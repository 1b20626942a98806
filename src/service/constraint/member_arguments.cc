#include "service/constraint/member_arguments.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "parser/json/value_writer.h"
#include "service/constraint/members.h"
#include "service/constraint/schema_words.h"

namespace portico {
namespace {

using parser::MemberForm;
using parser::TypeSet;

constexpr int kMaxReferences = 16;     // one behind the other
constexpr int kMaxTypeDepth = 8;       // as the parser's
constexpr size_t kTagPartBytes = 36;   // of a part without what it says
constexpr size_t kTypeVisitBytes = 4;  // what it costs to look at a value for its type
constexpr size_t kMaxKey = 128;
constexpr TypeSet kContainers = parser::kObjectType | parser::kArrayType;
constexpr std::pair<TypeSet, const char*> kTypeNames[] = {
    {parser::kStringType, "string"}, {parser::kIntegerType, "integer"},
    {parser::kNumberType, "number"}, {parser::kBooleanType, "boolean"},
    {parser::kNullType, "null"},     {parser::kObjectType, "object"},
    {parser::kArrayType, "array"},
};

// Types and nothing else.
bool IsPlain(const Json& schema) {
  if (SaysOnly(schema, {"type"})) return true;
  if (!SaysOnly(schema, {"anyOf"})) return false;
  const Json& ways = *schema.Find("anyOf");
  return ways.is_array() && std::all_of(ways.as_array().begin(), ways.as_array().end(), IsPlain);
}

// A short value of the same type.
Json OfSameType(const Json& value) {
  if (value.is_string()) return Json("");
  if (value.is_array()) return Json(JsonArray{});
  return value.is_object() ? Json(JsonObject{}) : value;
}

// Of what a schema says itself, as parsers see it.
TypeSet OwnTypes(const Json& schema) {
  JsonObject own;
  const Json* const values = schema.Find("enum");
  if (const Json* const type = schema.Find("type")) {
    own.emplace_back("type", *type);
  } else if (values != nullptr && values->is_array()) {
    JsonArray kinds;
    for (const Json& value : values->as_array()) kinds.push_back(OfSameType(value));
    own.emplace_back("enum", std::move(kinds));
  } else if (const Json* const value = schema.Find("const")) {
    own.emplace_back("const", OfSameType(*value));
  }
  if (const Json* const nullable = schema.Find("nullable")) own.emplace_back("nullable", *nullable);
  if (own.empty()) return 0;
  JsonObject function = {{"name", Json("f")}, {"parameters", Json(std::move(own))}};
  JsonArray tools;
  tools.emplace_back(std::move(function));
  return parser::ToolSet(Json(std::move(tools)), false).Arguments("f")->types;
}

// How many values and keywords of an object OwnTypes() looks at.
size_t OwnTypeValues(const Json& schema) {
  size_t values = schema.as_object().size() + 1;
  for (const char* const key : {"type", "enum"}) {
    const Json* const list = schema.Find(key);
    if (list != nullptr && list->is_array()) values += list->as_array().size();
  }
  return values;
}

std::vector<Json> Constants(const Json& schema) {
  if (const Json* value = schema.Find("const")) return {*value};
  const Json* values = schema.Find("enum");
  return values == nullptr || !values->is_array() ? std::vector<Json>() : values->as_array();
}

bool Reads(const std::string& text, TypeSet types, const Json& value) {
  parser::ValueWriter reader;
  std::string json;
  reader.Begin(types);
  reader.Push(text, &json);
  reader.End(&json);
  const auto read = Json::Parse(json);
  return read.ok() && *read == value;
}

std::string Replaced(std::string text, std::string_view with) {
  const size_t at = text.find("{}");
  return at == std::string::npos ? text : text.replace(at, 2, with);
}

}  // namespace

std::vector<std::string> TextExcludes(const std::vector<std::string>& markers,
                                      const MemberForm& form) {
  std::vector<std::string> excludes = form.excludes;
  if (!form.quote.empty()) {
    excludes.push_back(form.quote);
    return excludes;
  }
  for (const std::string& marker : markers) {
    if (marker.size() < 3 || marker.find('<') == std::string::npos) continue;
    // A tag may have attributes or a suffix.
    excludes.push_back(marker.ends_with('>') ? marker.substr(0, marker.size() - 1) : marker);
  }
  const std::string end(absl::StripAsciiWhitespace(Replaced(form.end, "")));
  if (!end.empty()) excludes.push_back(end);
  return excludes;
}

Json MemberArguments::Write(const Json& schema) {
  root_ = &schema;
  Json members = Members(schema);
  if (!budget_->spent()) return members;
  exact_ = false;
  budget_ = rest_;
  return AnyMembers(schema);
}

Json MemberArguments::Members(const Json& schema) {
  const MemberSyntax syntax = {
      .separator = form_.separator,
      .takes = [this](std::string_view name) { return TakesKey(name); },
      .write = [this](const std::string& before, const std::string& name,
                      const Json& one) { return Member(before, name, one); }};
  if (budget_->spent()) return Json();
  WrittenMembers members = {.part = std::nullopt, .exact = false};
  if (left_ > 0) members = MembersOf(schema, syntax);
  exact_ = exact_ && members.exact;
  return members.part ? *std::move(members.part) : AnyMembers(schema);
}

JsonArray MemberArguments::Literal(std::string_view text) const {
  if (!budget_->Take(kTagPartBytes + text.size())) return {};
  return tags_.Literal(text);
}

const Json* MemberArguments::Referred(const Json& schema) {
  const Json* const ref = schema.Find("$ref");
  if (ref == nullptr || !ref->is_string()) return nullptr;
  const auto [found, added] = targets_.try_emplace(ref->as_string(), nullptr);
  if (added) found->second = ReferredSchema(*root_, schema);
  return found->second;
}

const Json& MemberArguments::Resolved(const Json& given) {
  const Json* schema = &given;
  for (int i = 0; i < kMaxReferences; ++i) {
    const Json* next = SaysOnly(*schema, {"$ref"}) ? Referred(*schema) : nullptr;
    const Json* const all = schema->Find("allOf");
    if (all != nullptr && all->is_array() && all->as_array().size() == 1 &&
        SaysOnly(*schema, {"allOf"})) {
      next = &all->as_array().front();
    }
    if (next == nullptr) break;
    schema = next;
  }
  return *schema;
}

TypeSet MemberArguments::TypesOf(const Json& schema, int depth) {
  if (depth > kMaxTypeDepth || !schema.is_object()) return 0;
  if (!budget_->Look(kTypeVisitBytes * OwnTypeValues(schema))) return 0;
  TypeSet types = OwnTypes(schema);
  if (const Json* const target = Referred(schema)) types |= TypesOf(*target, depth + 1);
  for (const char* const key : {"anyOf", "oneOf", "allOf"}) {
    const Json* const ways = schema.Find(key);
    if (ways == nullptr || !ways->is_array()) continue;
    for (const Json& way : ways->as_array()) types |= TypesOf(way, depth + 1);
  }
  const Json* const properties = schema.Find("properties");
  if (types == 0 && properties != nullptr && properties->is_object()) types = parser::kObjectType;
  if (types == 0 && schema.Find("items") != nullptr) types = parser::kArrayType;
  return types;
}

bool MemberArguments::Look(const Json& schema) {
  if (!schema.is_object()) return !budget_->spent();
  size_t bytes = 0;
  for (const auto& [key, value] : schema.as_object()) {
    bytes += key.size();
    // They are looked at on their own.
    if (key == "properties" || key == "items" || key == "$defs" || key == "definitions") continue;
    if (value.is_array() || value.is_object()) bytes += value.Dump().size();
  }
  return budget_->Look(bytes);
}

bool MemberArguments::TakesKey(std::string_view name) const {
  return !name.empty() && name.size() <= kMaxKey &&
         std::find(form_.no_keys.begin(), form_.no_keys.end(), name) == form_.no_keys.end() &&
         std::all_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return absl::ascii_isalnum(byte) || byte >= 0x80 ||
                  std::string_view("_-.$@").find(c) != std::string_view::npos;
         });
}

Json MemberArguments::Framed(const std::string& before, const std::string& name,
                             std::string_view type, Json value) const {
  budget_->Take(2 * kTagPartBytes);  // a sequence that may be left out
  JsonArray parts = Literal(before + form_.before + name + Replaced(form_.after, type));
  parts.push_back(std::move(value));
  for (Json& part : Literal(Replaced(form_.end, name))) parts.push_back(std::move(part));
  return TagSequence(std::move(parts));
}

Json MemberArguments::FramedAny(const std::string& before, std::string_view type,
                                Json value) const {
  JsonArray parts = Literal(before + form_.before);
  parts.push_back(TagObject("regex", {{"pattern", Json("[a-zA-Z_][a-zA-Z0-9_]{0,63}")}}));
  for (Json& part : Literal(Replaced(form_.after, type))) parts.push_back(std::move(part));
  parts.push_back(std::move(value));
  for (Json& part : Literal(form_.end)) parts.push_back(std::move(part));
  return TagSequence(std::move(parts));
}

Json MemberArguments::Member(const std::string& before, const std::string& name,
                             const Json& given) {
  --left_;
  if (!form_.quote.empty()) return Framed(before, name, {}, QuotedValue(given));
  const Json& schema = Resolved(given);
  if (!Look(schema)) return Json();
  const parser::ValueTypes* const known = types_ == nullptr ? nullptr : types_->Find(name);
  TypeSet types = known == nullptr ? TypesOf(schema) : known->types;
  if (types == 0 && form_.text_default) types = parser::kStringType;
  if (form_.typed == MemberForm::Typed::kNot) {
    return Framed(before, name, {}, Value(schema, types));
  }
  return TypedWays(schema, types, [&](std::string_view type, Json value) {
    return Framed(before, name, type, std::move(value));
  });
}

Json MemberArguments::TypedWays(
    const Json& schema, TypeSet types,
    const std::function<Json(std::string_view type, Json value)>& framed) {
  const bool any = types == 0;
  const bool by_type = form_.typed == MemberForm::Typed::kType;
  JsonArray ways;
  if (any || (types & parser::kStringType) != 0) {
    ways.push_back(framed(by_type ? "string" : "true", Text(schema, parser::kStringType)));
  }
  const auto others = static_cast<TypeSet>((any ? 0x7F : types) & ~parser::kStringType);
  if (!by_type && others != 0) ways.push_back(framed("false", JsonOf(schema, others)));
  for (const auto& [type, type_name] : kTypeNames) {
    if (!by_type || (others & type) == 0) continue;
    // Numbers have one name.
    if (type == parser::kIntegerType && (others & parser::kNumberType) != 0) continue;
    ways.push_back(
        framed(type == parser::kIntegerType ? "number" : type_name, JsonOf(schema, type)));
  }
  return TagChoice(std::move(ways));
}

Json MemberArguments::AnyMembers(const Json& schema) {
  static const Json* const kAnyOther = new Json(true);
  if (form_.end.find("{}") != std::string::npos) {  // the name comes twice: only known ones can
    JsonArray ways;
    const Json* const properties = schema.Find("properties");
    if (properties == nullptr || !properties->is_object()) return Json();
    for (const auto& [name, unused] : properties->as_object()) {
      if (TakesKey(name)) ways.push_back(Framed("", name, {}, AnyText()));
    }
    return ways.empty() ? Json() : TagStar(TagChoice(std::move(ways)));
  }
  const Json* const given = schema.Find("additionalProperties");
  const bool says =
      budget_ != rest_ && given != nullptr && given->is_object() && !SaysOnly(*given, {});
  const Json& others = says ? Resolved(*given) : *kAnyOther;
  const auto one = [&](const std::string& before) {
    if (!Look(others)) return Json();
    if (!form_.quote.empty()) return FramedAny(before, {}, QuotedValue(others));
    const TypeSet types = TypesOf(others);
    if (form_.typed != MemberForm::Typed::kNot) {
      return TypedWays(others, types, [&](std::string_view type, Json value) {
        return FramedAny(before, type, std::move(value));
      });
    }
    // Texts of names that nobody knows are read by their look.
    const bool text = !says || form_.text_default;
    return FramedAny(before, {}, text ? AnyText() : JsonOf(others, types));
  };
  if (form_.separator.empty()) return TagStar(one(""));
  return TagOptional(TagSequence({one(""), TagStar(one(form_.separator))}));
}

Json MemberArguments::Value(const Json& schema, TypeSet types) {
  if ((types & parser::kStringType) == 0) return JsonOf(schema, types);
  return Text(schema, types);
}

Json MemberArguments::AnyText() const {
  JsonArray excludes;
  size_t bytes = kTagPartBytes;
  for (const std::string& text : excludes_) bytes += text.size();
  if (!budget_->Take(bytes)) return Json();
  for (const std::string& text : excludes_) excludes.push_back(Json(text));
  return TagObject("any_text", {{"excludes", Json(std::move(excludes))}});
}

// A value that may be a string, as text that is read as of these types.
Json MemberArguments::Text(const Json& schema, TypeSet types) {
  const std::vector<Json> constants = Constants(schema);
  JsonArray ways;
  for (const Json& value : constants) {
    if (types == parser::kStringType && !value.is_string()) continue;
    const std::string text = value.is_string() ? value.as_string() : value.Dump();
    const bool writable =
        !text.empty() && absl::StripAsciiWhitespace(text) == text && Reads(text, types, value) &&
        std::none_of(excludes_.begin(), excludes_.end(),
                     [&](const std::string& marker) { return text.find(marker) != text.npos; });
    if (writable) {
      if (!budget_->Take(kTagPartBytes + text.size())) return Json();
      ways.push_back(TagObject("const_string", {{"value", Json(text)}}));
    } else {
      exact_ = false;
    }
  }
  if (!ways.empty()) {
    exact_ = exact_ && SaysOnly(schema, {"type", "const", "enum"}) &&
             (schema.Find("const") == nullptr || schema.Find("enum") == nullptr);
    return TagChoice(std::move(ways));
  }
  // What is read as a number may be no integer, what is read as an object a list.
  const bool whole = (types & parser::kIntegerType) == 0 || (types & parser::kNumberType) != 0;
  const bool same = types == parser::kStringType || (whole && (types & kContainers) == 0);
  exact_ = exact_ && constants.empty() && same && IsPlain(schema);
  return AnyText();
}

Json MemberArguments::JsonOf(const Json& schema, TypeSet types) {
  if (budget_->spent()) return Json();
  if (types == 0) return json_(schema, budget_);
  if (schema == Json(false)) exact_ = false;
  if (schema.is_object()) {
    const Json* const type = schema.Find("type");
    if (type != nullptr && OwnTypes(Json(JsonObject{{"type", *type}})) == types) {
      return json_(schema, budget_);
    }
  }
  JsonArray names;
  for (const auto& [one, name] : kTypeNames) {
    if ((types & one) != 0) names.push_back(Json(name));
  }
  JsonObject outer = {{"type", Json(std::move(names))}};
  JsonObject inner;
  for (const auto& [key, value] : schema.is_object() ? schema.as_object() : inner) {
    const bool definitions = key == "$defs" || key == "definitions";
    (definitions ? outer : inner).emplace_back(key, value);
  }
  if (!inner.empty()) outer.emplace_back("allOf", Json(JsonArray{Json(std::move(inner))}));
  return json_(Json(std::move(outer)), budget_);
}

}  // namespace portico
