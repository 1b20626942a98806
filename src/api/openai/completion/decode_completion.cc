#include "api/openai/completion/decode_completion.h"

#include <fmt/format.h>

#include <cstdint>
#include <string_view>
#include <utility>

#include "api/common/field_reader.h"
#include "api/common/generation_fields.h"
#include "api/common/prompt_field.h"
#include "api/common/refused_fields.h"

namespace portico::api::openai {
namespace {

struct CompletionDraft : GenerationDraft {
  CompletionRequest request;
  std::optional<int32_t> best_of;
};

Status ReadPrompt(std::string_view name, Element value, CompletionDraft* draft) {
  bool is_list = false;
  return ReadPrompts(name, value, PromptForms::kAny, &draft->request.prompts, &is_list);
}

Status ReadMaxTokens(std::string_view name, Element value, CompletionDraft* draft) {
  return ReadInt64(name, value, kAnswerTokensOrNone, &draft->options.max_tokens);
}

Status ReadEcho(std::string_view name, Element value, CompletionDraft* draft) {
  return ReadBool(name, value, &draft->request.echo);
}

Status ReadBestOf(std::string_view name, Element value, CompletionDraft* draft) {
  return ReadInt32(name, value, {1, 128}, &draft->best_of);
}

Status ReadLogprobs(std::string_view name, Element value, CompletionDraft* draft) {
  PORTICO_RETURN_IF_ERROR(ReadInt32(name, value, kTopLogprobs, &draft->options.top_logprobs));
  draft->options.logprobs = true;
  return OkStatus();
}

Status RefuseSuffix(std::string_view name, Element value, CompletionDraft*) {
  std::string suffix;
  PORTICO_RETURN_IF_ERROR(ReadString(name, value, &suffix));
  if (suffix.empty()) return OkStatus();
  return InvalidArgument(name, "suffix is not supported by this server: leave it out");
}

Status RefuseChatField(std::string_view name, Element, CompletionDraft*) {
  return InvalidArgument(name, fmt::format("{} is a field of chat completions; here it is {}", name,
                                           name == "messages" ? "prompt" : "max_tokens"));
}

// Calls and reasoning are read in chats only.
constexpr RefusedField kChatOnly[] = {
    {"max_thinking_tokens", ""},
    {"require_reasoning", "false"},
    {"tool_choice", R"("none" "auto")"},
    {"tools", "[]"},
};
static_assert(IsSortedByName(kChatOnly));

Status RefuseChatOnly(std::string_view name, Element value, CompletionDraft*) {
  Status status;
  IsRefusedField(kChatOnly, name, value, &status);
  return status.ok()
             ? status
             : InvalidArgument(name, fmt::format("{} is a field of {}: leave it out", name,
                                                 name == "require_reasoning" ? "/generate"
                                                                             : "chat completions"));
}

constexpr FieldReader<CompletionDraft> kCompletion[] = {
    {"best_of", ReadBestOf},
    {"echo", ReadEcho},
    {"logprobs", ReadLogprobs},
    {"max_completion_tokens", RefuseChatField},
    {"max_thinking_tokens", RefuseChatOnly},
    {"max_tokens", ReadMaxTokens},
    {"messages", RefuseChatField},
    {"prompt", ReadPrompt, /*is_long=*/true},
    {"require_reasoning", RefuseChatOnly},
    {"suffix", RefuseSuffix},
    {"tool_choice", RefuseChatOnly},
    {"tools", RefuseChatOnly},
};
static_assert(IsSortedByName(kCompletion));

Status CheckBestOf(const CompletionDraft& draft, size_t prompts) {
  const GenerationOptions& options = draft.options;
  if (options.best_of < options.n) {
    return InvalidArgument("best_of", fmt::format("best_of must be at least n ({}), got {}",
                                                  options.n, options.best_of));
  }
  if (options.best_of > options.n && options.stream) {
    return InvalidArgument("best_of", "best_of above n cannot be streamed");
  }
  int64_t choices = static_cast<int64_t>(prompts) * options.best_of;
  if (choices > kMaxChoices) {
    return InvalidArgument(
        draft.best_of ? "best_of" : "n",
        fmt::format("prompts times answers must be at most {}, got {}", kMaxChoices, choices));
  }
  return OkStatus();
}

Status CheckCompletion(const CompletionDraft& draft) {
  PORTICO_RETURN_IF_ERROR(CheckGeneration(draft));
  if (draft.request.prompts.empty()) return InvalidArgument("prompt", "prompt is required");
  if (draft.options.max_tokens == 0 && !draft.request.echo) {
    return InvalidArgument("max_tokens", "max_tokens must be at least 1, or 0 with echo: true");
  }
  PORTICO_RETURN_IF_ERROR(CheckBestOf(draft, draft.request.prompts.size()));
  const RequestExtras* extras = draft.options.extras.get();
  if (extras != nullptr && extras->bootstrap_room.value_or(0) > INT64_MAX - kMaxChoices) {
    return InvalidArgument("bootstrap_room",
                           "bootstrap_room is too large for so many prompts and answers");
  }
  return OkStatus();
}

void FillLimits(CompletionDraft* draft) {
  if (!draft->options.max_tokens) draft->options.max_tokens = kDefaultCompletionTokens;
  draft->options.best_of = draft->best_of.value_or(draft->options.n);
}

}  // namespace

Status CheckLongCompletion(const std::string& body, simdjson::dom::parser& parser,
                           const OptionsCheck& check) {
  CompletionDraft draft;
  PORTICO_ASSIGN_OR_RETURN(
      const auto left_out,
      ReadShortFields(body, parser, kCompletion, &draft, [&](auto name, auto value) {
        return ReadSharedField(name, value, &draft, nullptr);
      }));
  if (!left_out) return OkStatus();
  PORTICO_RETURN_IF_ERROR(CheckLeftOut(*left_out));
  FillLimits(&draft);
  const size_t prompts = CountPrompts(*left_out, "prompt");
  PORTICO_RETURN_IF_ERROR(CheckBestOf(draft, prompts));
  return check(draft.options, prompts);
}

StatusOr<CompletionRequest> DecodeCompletion(const std::string& body, simdjson::dom::parser& parser,
                                             std::vector<std::string>* unknown_fields) {
  CompletionDraft draft;
  PORTICO_RETURN_IF_ERROR(ReadBody(body, parser, kCompletion, &draft, [&](auto name, auto value) {
    return ReadSharedField(name, value, &draft, unknown_fields);
  }));
  FillLimits(&draft);
  PORTICO_RETURN_IF_ERROR(CheckCompletion(draft));

  CompletionRequest request = std::move(draft.request);
  request.options = std::move(draft.options);
  return request;
}

}  // namespace portico::api::openai
