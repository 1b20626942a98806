// Completion answers: TextDelta → text_completion objects, whole and streamed, in OpenAI's exact
// shapes with the extensions matched_stop, token_ids and prompt_token_ids.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
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
  // The text goes on where the prompt's ends.
  void GoOnAfter(const CompletionLogprobs& prompt) { offset_ = prompt.offset_; }
  // Appends the object, with the items of `before` first (null: none), and forgets the tokens, but not where the text
  // stands.
  void Flush(std::string* out, const CompletionLogprobs* before = nullptr);
  size_t bytes() const {
    return tokens_.size() + token_logprobs_.size() + top_logprobs_.size() + text_offset_.size();
  }

 private:
  bool with_top_;
  int64_t offset_ = 0;
  std::string tokens_;  // each list's items, with commas between
  std::string token_logprobs_;
  std::string top_logprobs_;
  std::string text_offset_;
};

// The prompts that an answer repeats, encoded once for all their choices.
class CompletionPrompts {
 public:
  struct Encoded {
    int32_t prompt = 0;
    bool reported = false;
    std::string text;       // as in a JSON string
    std::string token_ids;  // `[1,2,3]`, where asked for
    bool has_logprobs = false;
    CompletionLogprobs logprobs;
  };
  struct Form {
    bool with_top = false;
    bool with_token_ids = false;
    Encoded operator()(PromptEcho prompt) const;
  };

  explicit CompletionPrompts(const GenerationOptions& options)
      : form_{options.top_logprobs > 0, options.return_token_ids},
        n_(static_cast<size_t>(options.n)) {}

  Form form() const { return form_; }
  void Take(Encoded prompt);
  // Null: it was not reported.
  const Encoded* Of(size_t choice) const;

 private:
  Form form_;
  size_t n_;
  std::vector<Encoded> prompts_;
};

// Gathers a whole answer. With echo each choice's text starts with its prompt's.
class CompletionAnswer {
 public:
  CompletionAnswer(AnswerHead head, const GenerationOptions& options);

  void OnPrompt(PromptEcho prompt) { TakePrompt(prompt_form()(std::move(prompt))); }
  CompletionPrompts::Form prompt_form() const { return prompts_.form(); }
  void TakePrompt(CompletionPrompts::Encoded prompt) { prompts_.Take(std::move(prompt)); }
  void OnDelta(const TextDelta& delta);
  // Of all choices' log-probabilities, those of their prompts too: most of a long body.
  size_t LogprobBytes() const;
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

  AnswerHead head_;
  bool logprobs_;
  bool with_top_;
  bool token_ids_;
  CompletionPrompts prompts_;
  std::vector<Choice> choices_;
  LastHiddenStates hidden_states_;
  Status error_;
};

// Renders a stream of server-sent events: as ChatStreamEncoder (api/openai/chat/chat_encoder.h), but without role
// events. Where a prompt was reported (echo, return_token_ids), the first event of each of its
// choices carries it.
class CompletionStreamEncoder : public AnswerStream {
 public:
  CompletionStreamEncoder(const AnswerHead& head, const GenerationOptions& options);

  void OnPrompt(PromptEcho prompt) { TakePrompt(prompt_form()(std::move(prompt))); }
  CompletionPrompts::Form prompt_form() const { return prompts_.form(); }
  void TakePrompt(CompletionPrompts::Encoded prompt) { prompts_.Take(std::move(prompt)); }
  // Appends whole events to `out`.
  void OnDelta(const TextDelta& delta, std::string* out);
  // OnEnd(), OnError(), ended(): AnswerStream.

 private:
  struct Choice {
    bool started = false;
    CompletionLogprobs logprobs;
  };

  void AppendPrompt(const CompletionPrompts::Encoded& prompt, const TextDelta& delta,
                    std::string* out);
  void AppendContent(const TextDelta& delta, std::string* out);
  void AppendFinish(const TextDelta& delta, bool with_tokens, std::string* out);
  void AppendHiddenStates(const TextDelta& delta, std::string* out);
  void AppendTokens(const TextDelta& delta, std::string* out);

  bool with_top_;
  CompletionPrompts prompts_;
  std::vector<Choice> choices_;
  LastHiddenStates hidden_states_;
};

}  // namespace portico::api::openai
