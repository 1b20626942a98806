#include "template/chat_template.h"

#include "template/chat_messages.h"
#include "template/probe_template.h"

namespace portico {
namespace {

bool IsGiven(const Json* value) { return value != nullptr && !value->is_null(); }

Status CheckObjects(const Json* list, const char* field, const char* message) {
  if (!IsGiven(list)) return OkStatus();
  if (!list->is_array()) return InvalidArgument(field, message);
  for (const Json& item : list->as_array()) {
    if (!item.is_object()) return InvalidArgument(field, message);
  }
  return OkStatus();
}

Status CheckRequest(const ChatTemplate::Request& request) {
  PORTICO_RETURN_IF_ERROR(
      CheckObjects(request.messages, "messages", "messages must be a list of objects"));
  if (!IsGiven(request.messages) || request.messages->as_array().empty()) {
    return InvalidArgument("messages",
                           "Cannot apply chat template to an empty conversation. Provide at least "
                           "one message.");
  }
  PORTICO_RETURN_IF_ERROR(
      CheckObjects(request.tools, "tools", "tools must be a list of JSON objects"));
  PORTICO_RETURN_IF_ERROR(CheckObjects(request.documents, "documents",
                                       "Documents should be a list of dicts with 'title' and "
                                       "'text' keys!"));
  if (request.continue_final_message && request.add_generation_prompt) {
    return InvalidArgument("continue_final_message",
                           "continue_final_message and add_generation_prompt are not compatible. "
                           "Use continue_final_message to continue the final message, and "
                           "add_generation_prompt to start a new one.");
  }
  if (request.continue_final_message && request.options.generation_spans != nullptr) {
    return InvalidArgument("continue_final_message",
                           "continue_final_message is not compatible with an assistant mask");
  }
  if (IsGiven(request.kwargs) && !request.kwargs->is_object()) {
    return InvalidArgument("chat_template_kwargs", "chat_template_kwargs must be an object");
  }
  return OkStatus();
}

}  // namespace

ChatTemplate::ChatTemplate() = default;
ChatTemplate::~ChatTemplate() = default;

StatusOr<std::shared_ptr<const ChatTemplate>> ChatTemplate::FromSource(std::string source,
                                                                       NamedTexts special_tokens) {
  NamedTexts templates;
  templates.emplace_back("default", std::move(source));
  return FromTemplates(std::move(templates), std::move(special_tokens));
}

StatusOr<std::shared_ptr<const ChatTemplate>> ChatTemplate::FromTemplates(
    NamedTexts templates, NamedTexts special_tokens) {
  std::shared_ptr<ChatTemplate> made(new ChatTemplate());
  for (auto& [name, source] : templates) {
    auto parsed = Template::Parse(std::move(source));
    if (!parsed.ok()) {
      std::string message = "chat template \"" + name + "\": ";
      return Error(parsed.status().code(), message.append(MessageOf(parsed.status())));
    }
    made->templates_.emplace_back(std::move(name), *std::move(parsed));
  }
  for (auto& [name, text] : special_tokens) made->special_tokens_.emplace_back(name, Json(text));
  return std::shared_ptr<const ChatTemplate>(std::move(made));
}

StatusOr<std::shared_ptr<const Template>> ChatTemplate::Choose(const Request& request) const {
  auto named = [&](std::string_view name) -> std::shared_ptr<const Template> {
    for (const auto& [key, value] : templates_) {
      if (key == name) return value;
    }
    return nullptr;
  };
  if (!request.chat_template.empty()) {
    // A lone template has no name: there "default" is a source like any other.
    const bool has_names =
        templates_.size() > 1 || (templates_.size() == 1 && templates_[0].first != "default");
    if (has_names) {
      if (auto found = named(request.chat_template)) return found;
    }
    auto parsed = Template::Parse(request.chat_template);
    if (!parsed.ok()) {
      return InvalidArgument("chat_template", std::string(MessageOf(parsed.status())));
    }
    return parsed;
  }
  if (IsGiven(request.tools)) {
    if (auto found = named("tool_use")) return found;
  }
  if (auto found = named("default")) return found;
  if (templates_.empty()) {
    return InvalidArgument("chat_template",
                           "the model has no chat template, and the request has none");
  }
  std::string names;
  for (const auto& [key, value] : templates_) names.append(names.empty() ? "" : ", ").append(key);
  return InvalidArgument("chat_template",
                         "the model has several chat templates and no default: " + names);
}

const TemplateFacts& ChatTemplate::facts(bool with_tools) const {
  absl::call_once(probed_[with_tools], [this, with_tools] {
    static const Json kNoTools{JsonArray{}};
    Request request;
    if (with_tools) request.tools = &kNoTools;
    const auto chosen = Choose(request);
    if (!chosen.ok()) return;
    Template::Variables tokens;
    for (const auto& [name, text] : special_tokens_) tokens.emplace_back(name, &text);
    facts_[with_tools] = ProbeTemplate(**chosen, tokens, with_tools);
  });
  return facts_[with_tools];
}

StatusOr<std::string> ChatTemplate::Render(const Request& request) const {
  static const Json kNull, kEmpty{JsonArray{}};
  PORTICO_ASSIGN_OR_RETURN(std::shared_ptr<const Template> chosen, Choose(request));
  PORTICO_RETURN_IF_ERROR(CheckRequest(request));

  const JsonArray& given = request.messages->as_array();
  Json own_messages;
  const Json* messages = request.messages;
  jinja::Continuation continuation;
  const bool keeps_null = request.keep_null_content;
  if (request.continue_final_message || !jinja::IsPrepared(given, keeps_null)) {
    JsonArray prepared = jinja::PrepareMessages(given, keeps_null);
    if (request.continue_final_message) {
      PORTICO_ASSIGN_OR_RETURN(
          continuation, jinja::TagLastMessage(request.continue_field, chosen->source(), &prepared));
    }
    own_messages = Json(std::move(prepared));
    messages = &own_messages;
  }
  const Json add_generation_prompt(request.add_generation_prompt);

  Template::Variables variables;
  variables.reserve(special_tokens_.size() + 8);
  variables.emplace_back("messages", messages);
  const Json* no_tools = request.no_tools_are_a_list ? &kEmpty : &kNull;
  variables.emplace_back("tools", request.tools != nullptr ? request.tools : no_tools);
  variables.emplace_back("documents", request.documents != nullptr ? request.documents : &kNull);
  variables.emplace_back("add_generation_prompt", &add_generation_prompt);
  for (const auto& [name, text] : special_tokens_) variables.emplace_back(name, &text);
  if (IsGiven(request.kwargs)) {
    for (const auto& [name, value] : request.kwargs->as_object()) {
      variables.emplace_back(name, &value);
    }
  }
  PORTICO_ASSIGN_OR_RETURN(std::string text, chosen->Render(variables, request.options));
  if (request.continue_final_message) {
    PORTICO_RETURN_IF_ERROR(jinja::CutAtTag(continuation, &text));
  }
  return text;
}

}  // namespace portico
