// Completion answers: TextDelta → text_completion objects, whole and streamed, in OpenAI's exact
// shapes with the extensions matched_stop, token_ids and prompt_token_ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/openai/answer.h"
#include "api/openai/answer_stream.h"
#include "api/openai/last_hidden_states.h"
#include "message/text_delta.h"
#include "message/text_request.h"

namespace portico::api::openai {

// `{"tokens":[…],"token_logprobs":[…],"top_logprobs":[…],"text_offset":[…]}`, grown token by token.
// Offsets count code points from the start of the choice's text.
class CompletionLogprobs {
 public:
  // `with_top`: alternatives were asked for; else "top_logprobs" is null.
  explicit CompletionLogprobs(bool with_top = false) : with_top_(with_top) {}

  void AddPrompt(const PromptEcho& prompt);
  void Add(const TextPositionLogprobs& position);
  // Appends the object and forgets the tokens, but not where the text stands.
  void Flush(std::string* out);

 private:
  bool with_top_;
  int64_t offset_ = 0;
  std::string tokens_;  // each list's items, with commas between
  std::string token_logprobs_;
  std::string top_logprobs_;
  std::string text_offset_;
};

// Gathers a whole answer. With echo each choice's text starts with its prompt's.
class CompletionAnswer {
 public:
  CompletionAnswer(AnswerHead head, const GenerationOptions& options);

  void OnPrompt(PromptEcho prompt);
  void OnDelta(const TextDelta& delta);
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

  void AppendChoice(size_t index, std::string* body);
  const PromptEcho* PromptOf(size_t choice) const;

  AnswerHead head_;
  size_t n_;
  bool logprobs_;
  bool with_top_;
  bool token_ids_;
  std::vector<PromptEcho> prompts_;
  std::vector<Choice> choices_;
  LastHiddenStates hidden_states_;
  Status error_;
};

// Renders a stream of server-sent events: as ChatStreamEncoder (chat_encoder.h), but without role
// events. Where a prompt was reported (echo, return_token_ids), the first event of each of its
// choices carries it.
class CompletionStreamEncoder : public AnswerStream {
 public:
  CompletionStreamEncoder(const AnswerHead& head, const GenerationOptions& options);

  void OnPrompt(PromptEcho prompt);
  // Appends whole events to `out`.
  void OnDelta(const TextDelta& delta, std::string* out);
  // OnEnd(), OnError(), ended(): AnswerStream.

 private:
  struct Choice {
    bool started = false;
    CompletionLogprobs logprobs;
  };

  void AppendPrompt(const PromptEcho& prompt, const TextDelta& delta, std::string* out);
  void AppendContent(const TextDelta& delta, std::string* out);
  void AppendFinish(const TextDelta& delta, bool with_tokens, std::string* out);
  void AppendHiddenStates(const TextDelta& delta, std::string* out);
  void AppendTokens(const TextDelta& delta, std::string* out);

  size_t n_;
  bool with_top_;
  std::vector<PromptEcho> prompts_;
  std::vector<Choice> choices_;
  LastHiddenStates hidden_states_;
};

}  // namespace portico::api::openai
