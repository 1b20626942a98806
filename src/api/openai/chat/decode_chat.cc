#include "api/openai/chat/decode_chat.h"

#include <string_view>
#include <utility>

#include "api/common/field_reader.h"
#include "api/common/generation_fields.h"
#include "api/openai/chat/chat_messages.h"
#include "api/openai/chat/template_variables.h"
#include "api/openai/chat/tool_fields.h"
#include "text/json_element.h"

namespace portico::api::openai {
namespace {

struct ChatDraft : GenerationDraft {
  ChatRequest request;
  ToolFields tools;
  ReasoningFields reasoning;
  std::optional<int64_t> max_completion_tokens;
  bool takes_media = false;
  std::vector<MediaItem> media;
};

Status ReadMessages(std::string_view, Element value, ChatDraft* draft) {
  draft->request.messages = JsonOf(value);
  return NormalizeMessages(&draft->request.messages, draft->takes_media ? &draft->media : nullptr);
}

template <Status (*kRead)(std::string_view, Element, ToolFields*)>
Status ReadToolField(std::string_view name, Element value, ChatDraft* draft) {
  return kRead(name, value, &draft->tools);
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
  return ReadInt64(name, value, kAnswerTokens, &draft->options.max_tokens);
}

Status ReadMaxThinkingTokens(std::string_view name, Element value, ChatDraft* draft) {
  return ReadInt32(name, value, {0, kMaxInt32}, &draft->options.max_thinking_tokens);
}

Status ReadMaxCompletionTokens(std::string_view name, Element value, ChatDraft* draft) {
  return ReadInt64(name, value, kAnswerTokens, &draft->max_completion_tokens);
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

template <bool ChatRequest::* kMember>
Status ReadChatFlag(std::string_view name, Element value, ChatDraft* draft) {
  return ReadBool(name, value, &(draft->request.*kMember));
}

// Fields of the completions API, which a chat request may have only by mistake.
Status RefuseTrue(std::string_view name, Element value, ChatDraft*) {
  if (value.is_bool() && !bool(value)) return OkStatus();
  return InvalidArgument(name, std::string(name) + " is not a field of chat completions");
}

Status RefusePrompt(std::string_view name, Element, ChatDraft*) {
  return InvalidArgument(name, "prompt is a field of completions; here it is messages");
}

Status RefuseBestOf(std::string_view name, Element value, ChatDraft*) {
  int64_t best_of = 0;
  if (value.is_int64() && !value.get(best_of) && best_of == 1) return OkStatus();
  return InvalidArgument(name, "best_of is not a field of chat completions");
}

Status RefuseRequireReasoning(std::string_view name, Element value, ChatDraft*) {
  bool required = false;
  PORTICO_RETURN_IF_ERROR(ReadBool(name, value, &required));
  if (!required) return OkStatus();
  return InvalidArgument(name,
                         "require_reasoning is a field of /generate: in a chat the template says "
                         "whether the answer begins with reasoning");
}

constexpr FieldReader<ChatDraft> kChat[] = {
    {"add_generation_prompt", ReadAddGenerationPrompt},
    {"best_of", RefuseBestOf},
    {"chat_template_kwargs", ReadTemplateKwargs},
    {"continue_final_message", ReadContinueFinalMessage},
    {"documents", ReadDocuments, /*is_long=*/true},
    {"echo", RefuseTrue},
    {"function_call", ReadToolField<ReadFunctionCall>},
    {"functions", ReadToolField<ReadFunctions>, /*is_long=*/true},
    {"logprobs", ReadLogprobs},
    {"max_completion_tokens", ReadMaxCompletionTokens},
    {"max_thinking_tokens", ReadMaxThinkingTokens},
    {"max_tokens", ReadMaxTokens},
    {"messages", ReadMessages, /*is_long=*/true},
    {"parallel_tool_calls", ReadChatFlag<&ChatRequest::parallel_tool_calls>},
    {"prompt", RefusePrompt},
    {"reasoning", ReadReasoningField},
    {"reasoning_effort", ReadEffortField},
    {"require_reasoning", RefuseRequireReasoning},
    {"separate_reasoning", ReadChatFlag<&ChatRequest::separate_reasoning>},
    {"stream_reasoning", ReadChatFlag<&ChatRequest::stream_reasoning>},
    {"tool_choice", ReadToolField<ReadToolChoice>},
    {"tools", ReadToolField<ReadTools>, /*is_long=*/true},
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
  const Json& last = request.messages.as_array().back();
  if (request.continue_final_message &&
      (last.GetString("role") != "assistant" || last.Find("tool_calls") != nullptr)) {
    return InvalidArgument("continue_final_message",
                           "continue_final_message needs a last message of the assistant, without "
                           "tool_calls");
  }
  return OkStatus();
}

void FillChatLimits(ChatDraft* draft) {
  if (draft->max_completion_tokens) {
    draft->options.max_tokens = draft->max_completion_tokens;
    draft->options.max_tokens_field = "max_completion_tokens";
  }
  draft->options.best_of = draft->options.n;
}

StatusOr<ChatRequest> Decode(const std::string& body, simdjson::dom::parser& parser,
                             std::vector<std::string>* unknown_fields, bool takes_media) {
  ChatDraft draft;
  draft.takes_media = takes_media;
  PORTICO_RETURN_IF_ERROR(ReadBody(body, parser, kChat, &draft, [&](auto name, auto value) {
    return ReadSharedField(name, value, &draft, unknown_fields);
  }));
  FillChatLimits(&draft);
  PORTICO_RETURN_IF_ERROR(CheckChat(draft));

  ChatRequest& request = draft.request;
  request.options = std::move(draft.options);
  AddMedia(std::move(draft.media), &request.options.extras);
  PORTICO_RETURN_IF_ERROR(TakeTools(std::move(draft.tools), &request));
  AddReasoningVariables(draft.reasoning, &request.chat_template_kwargs);
  return std::move(request);
}

}  // namespace

StatusOr<ChatRequest> DecodeChat(const std::string& body, simdjson::dom::parser& parser,
                                 std::vector<std::string>* unknown_fields) {
  return Decode(body, parser, unknown_fields, /*takes_media=*/false);
}

StatusOr<ChatRequest> DecodeChatWithMedia(const std::string& body, simdjson::dom::parser& parser,
                                          std::vector<std::string>* unknown_fields) {
  return Decode(body, parser, unknown_fields, /*takes_media=*/true);
}

Status CheckLongChat(const std::string& body, simdjson::dom::parser& parser,
                     const OptionsCheck& check) {
  ChatDraft draft;
  PORTICO_ASSIGN_OR_RETURN(const auto left_out,
                           ReadShortFields(body, parser, kChat, &draft, [&](auto name, auto value) {
                             return ReadSharedField(name, value, &draft, nullptr);
                           }));
  if (!left_out) return OkStatus();
  PORTICO_RETURN_IF_ERROR(CheckLeftOut(*left_out));
  FillChatLimits(&draft);
  return check(draft.options, 1);
}

}  // namespace portico::api::openai
