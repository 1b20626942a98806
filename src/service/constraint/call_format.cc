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

bool AllowsObjects(const Json& schema) {
  const Json* const type = schema.Find("type");
  if (type == nullptr) return true;
  if (!type->is_array()) return *type == Json("object");
  const JsonArray& types = type->as_array();
  return std::find(types.begin(), types.end(), Json("object")) != types.end();
}

}  // namespace

CallFormat::CallFormat(const ServingModel& model, const parser::CallForm& form, const Json& tools)
    : tags_(*model.tokenizer, model.output.markers), form_(form), types_(tools, false) {
  if (model.output.tools != nullptr) {
    excludes_ = TextExcludes(model.output.tools->markers, form.members);
  }
  for (const Json& tool : tools.as_array()) calls_.push_back(Call(tool));
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
  const auto not_in_form = [&] {
    if (!strict) return;
    unwritable_ = fmt::format(
        "the parameters of {} cannot be written in the form of this model's calls", quoted_name);
  };
  Parts parts = {form_.before_name + name + form_.after_name, {}};
  if (form_.style == parser::kPythonStyle) {
    const auto value = [&](Json of) { return part(std::move(of), "json"); };
    std::optional<Json> arguments = PythonArguments(schema, value);
    if (!arguments) {
      not_in_form();
      arguments = AnyPythonArguments(value);
    }
    if (!arguments->is_null()) parts.arguments.push_back(*std::move(arguments));
  } else if (form_.style == parser::kMemberStyle) {
    const std::function<Json(Json)> value = [&](Json of) {
      Json json = part(std::move(of), "json");
      json.Set("escape_less", Json(true));
      return json;
    };
    MemberArguments writer(tags_, form_.members, excludes_, value,
                           types_.Arguments(function.GetString("name")), &left_);
    Json arguments = writer.Write(schema);
    if (!writer.exact()) not_in_form();
    if (!arguments.is_null()) parts.arguments.push_back(std::move(arguments));
  } else {
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
