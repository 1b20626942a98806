// Chat answers: TextDelta → chat.completion and chat.completion.chunk, in OpenAI's exact shapes
// with the extensions matched_stop, token_ids and prompt_token_ids.
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

// Gathers a whole answer.
class ChatAnswer {
 public:
  ChatAnswer(AnswerHead head, const GenerationOptions& options);

  void OnPrompt(PromptEcho prompt) { prompt_ids_ = std::move(prompt.tokens); }
  void OnDelta(const TextDelta& delta);
  // Not OK as soon as a delta has failed; the answer is this error then.
  const Status& error() const { return error_; }
  // The body; once, after the last delta.
  std::string Body(const TokenUsage& total) const;

 private:
  struct Call {
    std::string id;
    std::string name;
    std::string arguments;
  };
  struct Choice {
    std::string text;
    std::string reasoning;
    std::vector<Call> calls;
    bool ends_in_calls = false;
    std::string logprobs;  // rendered positions, with commas between
    std::vector<TokenId> ids;
    FinishReason finish = FinishReason::kNone;
    MatchedStop matched_stop;
  };

  void AppendMessage(const Choice& choice, std::string* body) const;

  AnswerHead head_;
  std::string_view reasoning_field_;
  std::string_view calls_reason_;
  bool legacy_functions_;
  bool logprobs_;
  bool token_ids_;
  std::vector<Choice> choices_;
  std::vector<TokenId> prompt_ids_;
  LastHiddenStates hidden_states_;
  Status error_;
};

// Renders a stream of server-sent events.
//
// For each choice: before its first delta an event with role "assistant" and empty content (and
// prompt_token_ids where asked for); then one event for each delta that has text or a token, even
// if the token has no text yet; then one event with the finish reason. A delta that ends the choice
// gives its content event first if HasContent(), and then the finish event; if not, the stop
// token's id and log-probability are in the finish event. Where the output is read, reasoning and
// calls get events of their own, a call's first one with its name and no arguments, and tokens that
// are held or are markers give none, unless their ids or log-probabilities are wanted. Deltas with neither text, token nor
// finish give nothing. Hidden states that were asked for come in an event behind the finish event. A failed delta gives
// one error event and ends the stream.
class ChatStreamEncoder : public AnswerStream {
 public:
  ChatStreamEncoder(const AnswerHead& head, const GenerationOptions& options);

  void OnPrompt(PromptEcho prompt) { prompt_ids_ = std::move(prompt.tokens); }
  // Appends whole events to `out`.
  void OnDelta(const TextDelta& delta, std::string* out);
  // OnEnd(), OnError(), ended(): AnswerStream.

 private:
  void AppendRole(const TextDelta& delta, std::string* out);
  // Appends a content event up to its text.
  void BeginContent(int32_t index, std::string* out) const;
  void AppendContent(const TextDelta& delta, std::string* out);
  void AppendParsed(const TextDelta& delta, std::string* out);
  void AppendFinish(const TextDelta& delta, bool with_tokens, std::string* out);
  void AppendHiddenStates(const TextDelta& delta, std::string* out);
  void AppendTokens(const TextDelta& delta, std::string* out);

  std::string_view reasoning_field_;
  std::string no_reasoning_;  // `"reasoning_content":null`
  std::string plain_head_;    // of choice 0's content events, up to the text, where plain_
  const bool legacy_functions_;
  std::vector<bool> started_;  // by choice
  std::vector<TokenId> prompt_ids_;
  LastHiddenStates hidden_states_;
};

// Appends `{"token":…,"logprob":…,"bytes":[…],"top_logprobs":[…]}`.
void AppendChatLogprob(const TextPositionLogprobs& position, std::string* out);

}  // namespace portico::api::openai
