#include "service/constraint/call_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "service/constraint/members.h"
#include "text/json_writer.h"

namespace portico {
namespace {

constexpr const char* kDefinitions[] = {"$defs", "definitions"};
constexpr size_t kLeastCallBytes = 100;  // of a call in a tag, without its name and schema
constexpr size_t kLeastSchemaBytes =
    120;  // of the part that a schema is, without the schema and the name

bool AllowsObjects(const Json& schema) {
  const Json* const type = schema.Find("type");
  if (type == nullptr) return true;
  if (!type->is_array()) return *type == Json("object");
  const JsonArray& types = type->as_array();
  return std::find(types.begin(), types.end(), Json("object")) != types.end();
}

}  // namespace

CallFormat::CallFormat(const ServingModel& model, const parser::CallForm& form, const Json& tools,
                       size_t bytes)
    : tags_(*model.tokenizer, model.output.markers),
      form_(form),
      types_(tools, false),
      budget_(bytes),
      rest_(bytes) {
  if (model.output.tools != nullptr) {
    excludes_ = TextExcludes(model.output.tools->markers, form.members);
  }
  for (const Json& tool : tools.as_array()) {
    calls_.push_back(Call(tool));
    if (too_long()) return;
  }
}

Json CallFormat::Only(bool one) const {
  JsonArray parts = tags_.Literal(form_.lead);
  for (Json& part : Calls(one, {})) parts.push_back(std::move(part));
  return TagSequence(std::move(parts));
}

Json CallFormat::Within(bool one) const {
  if (form_.bare) return WithinByName(one);
  // A special token tells a call from text better than what stands before it in a tag.
  const JsonArray pieces = tags_.Literal(form_.begins);
  const auto is_token = [](const Json& piece) { return piece.GetString("type") == "token"; };
  const auto first = std::find_if(pieces.begin(), pieces.end(), is_token);
  const Json& begin = first == pieces.end() ? pieces.front() : *first;
  std::string seen;
  for (const Json& piece : pieces) {
    seen += tags_.TextOf(piece);
    if (&piece == &begin) break;
  }
  JsonArray rest;
  if (form_.section.empty()) {
    rest.push_back(AnyCall(seen));
  } else {
    rest = Calls(one, seen);
  }
  const bool token = is_token(begin);
  Json trigger = token ? *begin.Find("token") : Json(seen);
  JsonArray rule = {std::move(trigger), TagSequence(std::move(rest))};
  return TagObject(token ? "token_dispatch" : "dispatch",
                   {{"rules", Json(JsonArray{Json(std::move(rule))})}, {"loop", Json(!one)}});
}

// What stands in front of a name can be text: only all of a call's head begins one.
Json CallFormat::WithinByName(bool one) const {
  JsonArray rules;
  for (const Parts& call : calls_) {
    JsonArray rest = Rest(call, call.head);
    AddMore(one, &rest);
    JsonArray rule = {Json(form_.section + call.head), TagSequence(std::move(rest))};
    rules.push_back(Json(std::move(rule)));
  }
  return TagObject("dispatch", {{"rules", Json(std::move(rules))}, {"loop", Json(!one)}});
}

CallFormat::Parts CallFormat::Call(const Json& tool) {
  const Json* found = tool.Find("function");
  const Json& function = found == nullptr ? tool : *found;
  std::string name = function.GetString("name");
  std::string quoted_name;
  AppendJsonString(name, &quoted_name);
  Parts parts;
  if (!rest_.Take(kLeastCallBytes + name.size())) return parts;
  if (form_.json_name) name = quoted_name.substr(1, quoted_name.size() - 2);
  const bool strict = function.GetBool("strict", false);
  Json schema = Json(JsonObject{});
  const Json* parameters = function.Find("parameters");
  if (parameters != nullptr && parameters->is_object()) schema = *parameters;
  // Nothing but an object is a call's arguments, whatever else the schema allows.
  if (strict && !AllowsObjects(schema)) {
    unwritable_ = fmt::format("the parameters of {} are not of the type object", quoted_name);
  }
  schema.Set("type", Json("object"));
  // Other properties than those that a tool declares would help nobody, and objects that take any compile slowly.
  const auto part = [&](Json of, std::string_view style) {
    return TagObject("json_schema",
                     {{"json_schema", std::move(of)},
                      {"style", Json(style)},
                      {"closed", Json(true)},
                      {"loose", Json(!strict)},
                      {"label", Json(fmt::format("parameters of {}", quoted_name))}});
  };
  size_t definition_bytes = 0;
  for (const char* const key : kDefinitions) {
    const Json* const given = schema.Find(key);
    if (given != nullptr) definition_bytes += given->Dump().size();
  }
  const auto not_in_form = [&] {
    if (!strict) return;
    unwritable_ = fmt::format(
        "the parameters of {} cannot be written in the form of this model's calls", quoted_name);
  };
  // A value's, with the definitions that it may refer to.
  const auto value = [&](const Json& of, TagBudget* budget) {
    if (budget->spent()) return Json();
    const std::string text = of.Dump();
    const bool refers = of.is_object() && text.find("\"$ref\"") != std::string::npos;
    const size_t bytes = kLeastSchemaBytes + quoted_name.size() + text.size();
    if (!budget->Take(bytes + (refers ? definition_bytes : 0))) return Json();
    Json one = of;
    for (const char* const key : kDefinitions) {
      const Json* const given = schema.Find(key);
      if (refers && given != nullptr) one.Set(key, *given);
    }
    return part(std::move(one), "json");
  };
  parts.head = form_.before_name + name + form_.after_name;
  const bool apart = form_.style == parser::kPythonStyle || form_.style == parser::kMemberStyle;
  // Such a tool has no arguments (OpenAI).
  if (apart && parameters == nullptr) return parts;
  if (form_.style == parser::kPythonStyle) {
    TagBudget* budget = &budget_;
    const auto one = [&](const Json& of) { return value(of, budget); };
    WrittenMembers arguments = {.part = std::nullopt, .exact = false};
    if (!budget_.spent()) arguments = PythonArguments(schema, &budget_, one);
    if (!arguments.exact || budget_.spent()) not_in_form();
    if (!arguments.part || budget_.spent()) {
      budget = &rest_;
      arguments.part = AnyPythonArguments(one);
    }
    if (!arguments.part->is_null()) parts.arguments.push_back(*std::move(arguments.part));
  } else if (form_.style == parser::kMemberStyle) {
    const MemberArguments::JsonPart json = [&](const Json& of, TagBudget* budget) {
      Json one = value(of, budget);
      if (one.is_object()) one.Set("escape_less", Json(true));
      return one;
    };
    MemberArguments writer(tags_, form_.members, excludes_, json,
                           types_.Arguments(function.GetString("name")), &left_, &budget_, &rest_);
    Json arguments = writer.Write(schema);
    if (!writer.exact()) not_in_form();
    if (!arguments.is_null()) parts.arguments.push_back(std::move(arguments));
  } else if (rest_.Take(schema.Dump().size())) {
    parts.arguments.push_back(part(std::move(schema), form_.style));
  }
  return parts;
}

// The same in pieces, without the text that has been seen of the section's beginning.
JsonArray CallFormat::Calls(bool one, std::string_view seen) const {
  JsonArray parts = tags_.Literal(std::string_view(form_.section).substr(seen.size()));
  parts.push_back(AnyCall({}));
  AddMore(one, &parts);
  return parts;
}

// What follows the first call.
void CallFormat::AddMore(bool one, JsonArray* parts) const {
  if (!one) {
    JsonArray more = tags_.Literal(form_.separator);
    more.push_back(AnyCall({}));
    parts->push_back(TagStar(TagSequence(std::move(more))));
  }
  for (Json& part : tags_.Literal(form_.section_end)) parts->push_back(std::move(part));
}

// One of the calls, without the text that has been seen of its beginning.
Json CallFormat::AnyCall(std::string_view seen) const {
  JsonArray ways;
  for (const Parts& call : calls_) ways.push_back(TagSequence(Rest(call, seen)));
  return TagChoice(std::move(ways));
}

// A call without the text that has been seen of it; not empty, as forms have an end.
JsonArray CallFormat::Rest(const Parts& call, std::string_view seen) const {
  JsonArray parts = tags_.Literal(std::string_view(call.head).substr(seen.size()));
  if (!form_.counter_end.empty()) {
    parts.push_back(TagObject("regex", {{"pattern", Json("[0-9]{1,4}")}}));
    for (Json& part : tags_.Literal(form_.counter_end)) parts.push_back(std::move(part));
  }
  parts.insert(parts.end(), call.arguments.begin(), call.arguments.end());
  for (Json& part : tags_.Literal(form_.end)) parts.push_back(std::move(part));
  return parts;
}

}  // namespace portico
