// What tests of generations with long prompts have in common.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu_pool.h"
#include "service/active_rids.h"
#include "service/generation/generation_for_test.h"

namespace portico {

inline constexpr size_t kLongPromptTokens = 600;
// Too many for the shard, whatever the pool does.
inline constexpr size_t kVeryLongPromptTokens = 6000;

// Prompts that are spelled and encoded on a pool of one thread, which works when the test lets it.
class GenerationPromptsFixture : public GenerationFixture {
 protected:
  GenerationPromptsFixture() { pool_ = &cpu_; }
  ~GenerationPromptsFixture() override {
    LetPoolWork();
    OnShard([&] { generation_.reset(); });
  }

  void HoldPool() {
    auto held = std::make_shared<std::promise<void>>();
    std::future<void> goes_on = let_go_.get_future();
    ASSERT_TRUE(cpu_.Submit([held, goes_on = std::move(goes_on)] {
      held->set_value();
      goes_on.wait();
    }));
    held->get_future().wait();
    holds_ = true;
  }
  void LetPoolWork() {
    if (!std::exchange(holds_, false)) return;
    let_go_.set_value();
  }
  // Until the pool has done what it had, and the shard what came of it.
  void Settle() {
    LetPoolWork();
    std::promise<void> last;
    while (!cpu_.Submit([&] { last.set_value(); })) std::this_thread::yield();
    last.get_future().wait();
    Replay();
  }
  // Until the shard has passed on what can go on.
  void Replay() {
    double before = 0;
    do {
      before = HeldDeltas();
      OnShard([] {});
      OnShard([] {});
    } while (HeldDeltas() != before);
  }
  void CountPerTurn() {
    sink_.on_delta = [this] {
      if (in_turn_++ > 0) return;
      shard_.AtEndOfTurn(
          [this] { most_in_turn_ = std::max(most_in_turn_, std::exchange(in_turn_, 0)); });
    };
  }

  static GenerationPlan::Prompt LongPrompt(size_t tokens = kLongPromptTokens) {
    GenerationPlan::Prompt prompt;
    std::vector<TokenId> ids(tokens);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<TokenId>(1 + i % 4);
    prompt.ids = std::make_shared<const std::vector<TokenId>>(std::move(ids));
    prompt.text = "the prompt";
    prompt.max_new_tokens = 9;
    return prompt;
  }
  static GenerationPlan LongPlan(int32_t n = 1) {
    GenerationPlan plan = Plan(n);
    plan.prompts[0] = LongPrompt();
    plan.echo = true;
    plan.options.logprobs = true;
    plan.options.top_logprobs = 2;
    plan.prompt_logprobs_start = 0;
    return plan;
  }

  TokenDelta Delta(size_t request, std::vector<TokenId> tokens,
                   FinishReason finish = FinishReason::kNone) const {
    TokenDelta delta;
    delta.stream = engine_->requests[request].stream;
    delta.tokens.assign(tokens.begin(), tokens.end());
    delta.finish = finish;
    return delta;
  }
  // The first of its stream.
  TokenDelta First(size_t request, std::vector<TokenId> tokens,
                   FinishReason finish = FinishReason::kNone) const {
    TokenDelta delta = Delta(request, std::move(tokens), finish);
    const std::vector<TokenId>& prompt = *engine_->requests[request].prompt;
    for (size_t i = 1; i < prompt.size(); ++i) {
      PositionLogprobs& position = delta.prompt_logprobs.emplace_back();
      position.chosen = {prompt[i], -0.5f - static_cast<float>(i)};
      position.top = {{1, -0.25f}, {2, -0.75f}};
    }
    return delta;
  }
  void Deliver(TokenDelta delta) {
    std::vector<TokenDelta> batch;
    batch.push_back(std::move(delta));
    hub_.Deliver(std::move(batch));
    OnShard([] {});
  }

  double HeldDeltas() { return metrics_.Of(model_).held_deltas.Value(); }
  bool RidIsFree() { return rids_.Take("mine").ok(); }
  void StartNamed(GenerationPlan plan) {
    plan.options.rid = "mine";
    ASSERT_TRUE(TakeRids(rids_, &plan).ok());
    Start(std::move(plan));
    ASSERT_FALSE(RidIsFree());
  }

  ActiveRids rids_;
  CpuPool cpu_{1, 4};
  std::promise<void> let_go_;
  bool holds_ = false;
  size_t in_turn_ = 0;
  size_t most_in_turn_ = 0;
};

}  // namespace portico
