// A request for the probabilities of labels, as a generating model's next token, while it is answered.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "api/long_answer.h"
#include "api/openai/text_call.h"
#include "api/planning.h"
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
    if (!board_.status().ok()) return Fail(board_.status());
    if (board_.values() <= kFewNumbers) return SendBody(encode_(board_, total));
    ended_ = true;
    auto encode = [board = std::move(board_), encode = std::move(encode_), total]() mutable {
      return encode(board, total);
    };
    if (!EncodeOnPool(*this, shard_, std::move(encode))) Fail(PoolIsFull());
  }

  void SendBody(std::string body) {
    ReplyJson(*exchange_, shard_.api, 200, std::move(body));
    Leave();
  }

  // What has ended cannot be aborted while its bytes are put together.
  void Abort() override {
    if (!ended_) TextCall::Abort();
  }

 private:
  void Fail(const Status& error) {
    ReplyError(*exchange_, shard_.api, error);
    Leave();
  }

  ScoreBoard board_;
  Encode encode_;
  bool ended_ = false;  // and is encoded on the pool
};

}  // namespace portico::api::openai
