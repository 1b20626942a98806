// Completion answers: TextDelta → text_completion objects, whole and streamed, in OpenAI's exact
// shapes with the extensions matched_stop, token_ids and prompt_token_ids.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai/answer.h"
#include "message/text_delta.h"
#include "message/text_request.h"

namespace portico::api::openai {

// `{"tokens":[…],"token_logprobs":[…],"top_logprobs":[…],"text_offset":[…]}`, grown token by token.
// Offsets count code points from the start of the choice's text.
class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(bool with_top = false, int64_t offset = 0)
      : with_top_(with_top), offset_(offset) {}

  void Add(const TextPositionLogprobs& position);
  bool empty() const { return tokens_.empty(); }
  int64_t offset() const { return offset_; }
  void set_offset(int64_t offset) { offset_ = offset; }
  // Appends the object and forgets the tokens, but not the offset.
  void Flush(std::string* out);

 private:
  bool with_top_;
  int64_t offset_;
  std::string tokens_;  // each list's items, with commas between
  std::string token_logprobs_;
  std::string top_logprobs_;
  std::string text_offset_;
};

// Gathers a whole answer. Prompt texts come first in each choice where they were reported with text
// (echo).
class CompletionAnswer {
 public:
  CompletionAnswer(AnswerHead head, const GenerationOptions& options, bool echo);

  void OnPrompt(PromptEcho prompt);
  void OnDelta(TextDelta delta);
  // Not OK as soon as a delta has failed; the answer is this error then.
  const Status& error() const { return error_; }
  // The body; once, after the last delta.
  std::string Body(const TokenUsage& total);

 private:
  struct Choice {
    bool started = false;
    std::string text;
    CompletionLogprobs logprobs;
    std::vector<TokenId> ids;
    FinishReason finish = FinishReason::kNone;
    MatchedStop matched_stop;
  };

  AnswerHead head_;
  int32_t n_;
  bool echo_;
  bool logprobs_;
  bool top_;
  bool token_ids_;
  std::vector<PromptEcho> prompts_;
  std::vector<Choice> choices_;
  Status error_;
};

// Renders a stream of server-sent events: as ChatStreamEncoder (chat_encoder.h), but without role
// events. With echo or return_token_ids the first event of a choice carries the prompt.
class CompletionStreamEncoder {
 public:
  CompletionStreamEncoder(const AnswerHead& head, const GenerationOptions& options, bool echo);

  void OnPrompt(PromptEcho prompt);
  // Appends whole events to `out`.
  void OnDelta(const TextDelta& delta, std::string* out);
  // The usage event where asked for, and [DONE].
  void OnEnd(const TokenUsage& total, std::string* out);
  // One error event and [DONE].
  void OnError(const Status& error, std::string* out);
  // [DONE] has been written: later calls append nothing.
  bool ended() const { return ended_; }

 private:
  struct Choice {
    bool started = false;
    int64_t offset = 0;  // of the text so far
  };

  void AppendPrompt(int32_t index, TokenUsage usage, std::string* out);
  void AppendContent(const TextDelta& delta, std::string* out);
  void AppendFinish(const TextDelta& delta, bool with_tokens, std::string* out);
  void AppendLogprobs(const std::vector<TextPositionLogprobs>& positions, int32_t index,
                      std::string* out);
  void AppendTail(const TokenUsage& usage, std::string* out);

  std::string head_;  // "data: {"id":…,"choices":[{"index":"
  std::string usage_head_;
  int32_t n_;
  bool echo_;
  bool logprobs_;
  bool top_;
  bool token_ids_;
  bool include_usage_;
  bool continuous_usage_;
  bool ended_ = false;
  std::vector<PromptEcho> prompts_;
  std::vector<Choice> choices_;
};

}  // namespace portico::api::openai
