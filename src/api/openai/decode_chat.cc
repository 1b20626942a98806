#include "api/openai/decode_chat.h"

#include <string_view>
#include <utility>

#include "api/openai/chat_messages.h"
#include "api/openai/field_reader.h"
#include "api/openai/generation_fields.h"
#include "api/openai/template_variables.h"
#include "text/json_element.h"

namespace portico::api::openai {
namespace {

struct ChatDraft : GenerationDraft {
  ChatRequest request;
  ReasoningFields reasoning;
  std::optional<int32_t> max_completion_tokens;
};

Status ReadMessages(std::string_view, Element value, ChatDraft* draft) {
  draft->request.messages = JsonOf(value);
  return NormalizeMessages(&draft->request.messages);
}

Status ReadTools(std::string_view, Element value, ChatDraft* draft) {
  Json tools = JsonOf(value);
  PORTICO_RETURN_IF_ERROR(CheckTools(tools));
  if (!tools.as_array().empty()) draft->request.tools = std::move(tools);
  return OkStatus();
}

Status ReadToolChoice(std::string_view name, Element value, ChatDraft* draft) {
  std::string_view text;
  if (!value.get(text) && (text == "auto" || text == "none")) {
    draft->request.tool_choice = text;
    return OkStatus();
  }
  if (value.is_object() || (value.is_string() && text == "required")) {
    return InvalidArgument(name,
                           "tool_choice: only \"auto\" and \"none\" are supported by this server");
  }
  return WrongValue(name, "\"auto\" or \"none\"", value);
}

Status ReadDocuments(std::string_view name, Element value, ChatDraft* draft) {
  PORTICO_RETURN_IF_ERROR(ExpectList(name, value));
  for (Element item : simdjson::dom::array(value)) {
    if (!item.is_object()) return WrongValue(name, "a list of objects", item);
  }
  draft->request.documents = JsonOf(value);
  return OkStatus();
}

Status ReadTemplateKwargs(std::string_view name, Element value, ChatDraft* draft) {
  PORTICO_RETURN_IF_ERROR(ExpectObject(name, value));
  draft->request.chat_template_kwargs = JsonOf(value);
  return OkStatus();
}

Status ReadTopLogprobs(std::string_view name, Element value, ChatDraft* draft) {
  return ReadInt32(name, value, kTopLogprobs, &draft->options.top_logprobs);
}

Status ReadLogprobs(std::string_view name, Element value, ChatDraft* draft) {
  return ReadBool(name, value, &draft->options.logprobs);
}

Status ReadMaxTokens(std::string_view name, Element value, ChatDraft* draft) {
  return ReadInt32(name, value, {1, kMaxInt32}, &draft->options.max_tokens);
}

Status ReadMaxCompletionTokens(std::string_view name, Element value, ChatDraft* draft) {
  return ReadInt32(name, value, {1, kMaxInt32}, &draft->max_completion_tokens);
}

Status ReadEffortField(std::string_view name, Element value, ChatDraft* draft) {
  return ReadReasoningEffort(name, value, &draft->reasoning);
}

Status ReadReasoningField(std::string_view name, Element value, ChatDraft* draft) {
  return ReadReasoning(name, value, &draft->reasoning);
}

Status ReadAddGenerationPrompt(std::string_view name, Element value, ChatDraft* draft) {
  return ReadBool(name, value, &draft->request.add_generation_prompt);
}

Status ReadContinueFinalMessage(std::string_view name, Element value, ChatDraft* draft) {
  return ReadBool(name, value, &draft->request.continue_final_message);
}

// No reasoning parser exists yet, so there is nothing to separate either way.
Status CheckIsBool(std::string_view name, Element value, ChatDraft*) {
  return value.is_bool() ? OkStatus() : WrongValue(name, "true or false", value);
}

// Fields of the completions API, which a chat request may have only by mistake.
Status RefuseTrue(std::string_view name, Element value, ChatDraft*) {
  if (value.is_bool() && !bool(value)) return OkStatus();
  return InvalidArgument(name, std::string(name) + " is not a field of chat completions");
}

Status RefuseBestOf(std::string_view name, Element value, ChatDraft*) {
  int64_t best_of = 0;
  if (value.is_int64() && !value.get(best_of) && best_of == 1) return OkStatus();
  return InvalidArgument(name, "best_of is not a field of chat completions");
}

constexpr FieldReader<ChatDraft> kChat[] = {
    {"add_generation_prompt", ReadAddGenerationPrompt},
    {"best_of", RefuseBestOf},
    {"chat_template_kwargs", ReadTemplateKwargs},
    {"continue_final_message", ReadContinueFinalMessage},
    {"documents", ReadDocuments},
    {"echo", RefuseTrue},
    {"logprobs", ReadLogprobs},
    {"max_completion_tokens", ReadMaxCompletionTokens},
    {"max_tokens", ReadMaxTokens},
    {"messages", ReadMessages},
    {"reasoning", ReadReasoningField},
    {"reasoning_effort", ReadEffortField},
    {"separate_reasoning", CheckIsBool},
    {"stream_reasoning", CheckIsBool},
    {"tool_choice", ReadToolChoice},
    {"tools", ReadTools},
    {"top_logprobs", ReadTopLogprobs},
};
static_assert(IsSortedByName(kChat));

Status CheckChat(const ChatDraft& draft) {
  PORTICO_RETURN_IF_ERROR(CheckGeneration(draft));
  const ChatRequest& request = draft.request;
  if (request.messages.is_null()) return InvalidArgument("messages", "messages is required");
  if (draft.options.top_logprobs > 0 && !draft.options.logprobs) {
    return InvalidArgument("top_logprobs", "top_logprobs is allowed only with logprobs: true");
  }
  if (request.continue_final_message &&
      request.messages.as_array().back().GetString("role") != "assistant") {
    return InvalidArgument("continue_final_message",
                           "continue_final_message needs a last message of the assistant");
  }
  return OkStatus();
}

}  // namespace

StatusOr<ChatRequest> DecodeChat(const std::string& body, simdjson::dom::parser& parser,
                                 std::vector<std::string>* unknown_fields) {
  ChatDraft draft;
  PORTICO_RETURN_IF_ERROR(ReadBody(body, parser, kChat, &draft, [&](auto name, auto value) {
    return ReadSharedField(name, value, &draft, unknown_fields);
  }));
  PORTICO_RETURN_IF_ERROR(CheckChat(draft));

  ChatRequest request = std::move(draft.request);
  request.options = std::move(draft.options);
  if (draft.max_completion_tokens) {
    request.options.max_tokens = draft.max_completion_tokens;
    request.options.max_tokens_field = "max_completion_tokens";
  }
  request.options.best_of = request.options.n;
  if (request.tool_choice.empty()) request.tool_choice = request.tools.is_null() ? "none" : "auto";
  AddReasoningVariables(draft.reasoning, &request.chat_template_kwargs);
  return request;
}

}  // namespace portico::api::openai
