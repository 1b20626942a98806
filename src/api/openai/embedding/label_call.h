// A request for the probabilities of labels, as a generating model's next token, while it is answered.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "api/openai/text_call.h"
#include "api/reply.h"
#include "service/generation/score.h"

namespace portico::api::openai {

class LabelCall final : public TextCall {
 public:
  // The bytes of the answer. At most once.
  using Encode = absl::AnyInvocable<std::string(const ScoreBoard&, TokenUsage)>;

  // For the items and labels of `plan`.
  LabelCall(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
            const GenerationPlan& plan, bool softmax, Encode encode)
      : TextCall(std::move(exchange), shard),
        board_(plan.prompts.size(), plan.logprob_ids->size(), softmax),
        encode_(std::move(encode)) {}

  void OnPrompt(PromptEcho) override {}
  void OnDelta(TextDelta&& delta) override { board_.OnDelta(delta); }
  void OnEnd(const TokenUsage& total) override {
    if (board_.status().ok()) {
      ReplyJson(*exchange_, shard_.api, 200, encode_(board_, total));
    } else {
      ReplyError(*exchange_, shard_.api, board_.status());
    }
    Leave();
  }

 private:
  ScoreBoard board_;
  Encode encode_;
};

}  // namespace portico::api::openai
