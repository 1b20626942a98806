#include "api/openai/chat/tool_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "api/openai/chat/chat_messages.h"
#include "text/json_element.h"

namespace portico::api::openai {
namespace {

using Mode = ToolChoice::Mode;

constexpr std::string_view kChoices =
    "\"none\", \"auto\", \"required\", {\"type\":\"function\",\"function\":{\"name\"}} or "
    "allowed_tools";

std::string_view NameOf(const Json& tool) {
  const Json* function = tool.Find("function");
  const Json* name = function == nullptr ? nullptr : function->Find("name");
  return name != nullptr && name->is_string() ? std::string_view(name->as_string())
                                              : std::string_view();
}

bool Offers(const Json& tools, std::string_view name) {
  return tools.is_array() && std::any_of(tools.as_array().begin(), tools.as_array().end(),
                                         [&](const Json& tool) { return NameOf(tool) == name; });
}

Status CheckNames(const Json& tools, std::string_view field) {
  std::set<std::string_view> names;
  for (const Json& tool : tools.as_array()) {
    std::string_view name = NameOf(tool);
    if (!names.insert(name).second) {
      return InvalidArgument(field,
                             fmt::format("{}: there are two of the name \"{}\"", field, name));
    }
  }
  return OkStatus();
}

// {"mode": "auto" | "required", "tools": [{"type": "function", "function": {"name"}}]}, or with the name outside.
Status ReadAllowed(std::string_view field, const Json& allowed, ToolChoice* choice) {
  const std::string mode = allowed.GetString("mode", "auto");
  if (mode != "auto" && mode != "required") {
    return InvalidArgument(field,
                           "tool_choice.allowed_tools.mode must be \"auto\" or \"required\"");
  }
  choice->mode = mode == "auto" ? Mode::kAuto : Mode::kRequired;
  const Json* tools = allowed.Find("tools");
  if (tools == nullptr || !tools->is_array() || tools->as_array().empty()) {
    return InvalidArgument(field, "tool_choice.allowed_tools.tools must be a list and not empty");
  }
  for (const Json& tool : tools->as_array()) {
    std::string name(NameOf(tool));
    if (name.empty()) name = tool.GetString("name");
    if (name.empty()) {
      return InvalidArgument(field,
                             "tool_choice.allowed_tools.tools must hold functions with names");
    }
    choice->allowed.push_back(std::move(name));
  }
  return OkStatus();
}

}  // namespace

Status CheckToolList(const Json& tools) {
  PORTICO_RETURN_IF_ERROR(CheckTools(tools));
  return CheckNames(tools, "tools");
}

Status ReadTools(std::string_view, Element value, ToolFields* out) {
  Json tools = JsonOf(value);
  PORTICO_RETURN_IF_ERROR(CheckToolList(tools));
  if (!tools.as_array().empty()) out->tools = std::move(tools);
  return OkStatus();
}

Status ReadFunctions(std::string_view name, Element value, ToolFields* out) {
  PORTICO_RETURN_IF_ERROR(ExpectList(name, value));
  JsonArray tools;
  for (Element item : simdjson::dom::array(value)) {
    Json tool{JsonObject{}};
    tool.Set("type", Json("function"));
    tool.Set("function", JsonOf(item));
    tools.push_back(std::move(tool));
  }
  Json wrapped(std::move(tools));
  Status status = CheckTools(wrapped);
  if (!status.ok()) {
    std::string message(MessageOf(status));
    for (auto [from, to] : {std::pair<std::string_view, std::string_view>{"tools[", "functions["},
                            {".function", ""}}) {
      if (size_t at = message.find(from); at != std::string::npos)
        message.replace(at, from.size(), to);
    }
    return InvalidArgument(name, message);
  }
  PORTICO_RETURN_IF_ERROR(CheckNames(wrapped, name));
  if (!wrapped.as_array().empty()) out->functions = std::move(wrapped);
  return OkStatus();
}

Status ReadToolChoice(std::string_view name, Element value, ToolFields* out) {
  ToolChoice choice;
  std::string_view text;
  if (!value.get(text)) {
    if (text != "none" && text != "auto" && text != "required")
      return WrongValue(name, kChoices, value);
    choice.mode = text == "none" ? Mode::kNone : text == "auto" ? Mode::kAuto : Mode::kRequired;
  } else if (value.is_object()) {
    const Json given = JsonOf(value);
    const std::string type = given.GetString("type");
    if (type == "allowed_tools") {
      const Json* allowed = given.Find("allowed_tools");
      PORTICO_RETURN_IF_ERROR(ReadAllowed(name, allowed == nullptr ? given : *allowed, &choice));
    } else {
      choice.mode = Mode::kRequired;
      choice.name = NameOf(given);
      if (choice.name.empty()) choice.name = given.GetString("name");
      if ((type != "function" && !type.empty()) || choice.name.empty()) {
        return WrongValue(name, kChoices, value);
      }
    }
  } else {
    return WrongValue(name, kChoices, value);
  }
  out->two_choices = out->choice.has_value();
  out->choice = std::move(choice);
  out->choice_field = "tool_choice";
  return OkStatus();
}

Status ReadFunctionCall(std::string_view name, Element value, ToolFields* out) {
  ToolChoice choice;
  std::string_view text;
  if (!value.get(text) && (text == "none" || text == "auto")) {
    choice.mode = text == "none" ? Mode::kNone : Mode::kAuto;
  } else if (value.is_object()) {
    choice.mode = Mode::kRequired;
    choice.name = JsonOf(value).GetString("name");
    if (choice.name.empty()) return WrongValue(name, "\"none\", \"auto\" or {\"name\"}", value);
  } else {
    return WrongValue(name, "\"none\", \"auto\" or {\"name\"}", value);
  }
  out->two_choices = out->choice.has_value();
  out->choice = std::move(choice);
  out->choice_field = "function_call";
  return OkStatus();
}

Status TakeTools(ToolFields fields, ChatRequest* request) {
  if (!fields.functions.is_null()) {
    if (!fields.tools.is_null()) {
      return InvalidArgument("functions", "functions and tools cannot both be given");
    }
    request->options.legacy_functions = true;
    fields.tools = std::move(fields.functions);
  }
  if (fields.two_choices) {
    return InvalidArgument("function_call", "function_call and tool_choice cannot both be given");
  }
  const bool offers = !fields.tools.is_null();
  request->tools = std::move(fields.tools);
  if (!fields.choice) {
    request->tool_choice.mode = offers ? Mode::kAuto : Mode::kNone;
    return OkStatus();
  }
  ToolChoice& choice = *fields.choice;
  const std::string_view field = fields.choice_field;
  if (choice.mode == Mode::kRequired && !offers) {
    return InvalidArgument(field, fmt::format("{} asks for a call, but there are no tools", field));
  }
  auto unknown = [&](const std::string& name) {
    return InvalidArgument(
        field, fmt::format("{} names \"{}\", which is not one of the tools", field, name));
  };
  if (!choice.name.empty()) {
    if (!Offers(request->tools, choice.name)) return unknown(choice.name);
    choice.allowed = {choice.name};
  }
  for (const std::string& name : choice.allowed) {
    if (!Offers(request->tools, name)) return unknown(name);
  }
  request->tool_choice = std::move(choice);
  return OkStatus();
}

}  // namespace portico::api::openai
