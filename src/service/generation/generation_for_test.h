// What tests of generations have in common.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/cpu_pool.h"
#include "net/loop/run_on_shard_for_test.h"
#include "service/generation/generation.h"

namespace portico {

// Keeps what is submitted; the test says what the engine answers, and when.
class HeldEngine final : public Engine {
 public:
  HeldEngine() {
    info_.vocab_size = 8;
    info_.context_length = 100;
    info_.can.disaggregation = true;
    info_.can.logprobs = info_.can.prompt_logprobs = true;
  }
  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest request, TokenSink*) override {
    requests.push_back(std::move(request));
    return OkStatus();
  }
  void Abort(StreamId stream, ShardIndex shard) override {
    aborted.push_back(stream);
    aborted_on = shard;
  }
  EngineLoad load() const override { return {}; }
  void Stop() override {}

  std::vector<GenerateRequest> requests;
  std::vector<StreamId> aborted;
  ShardIndex aborted_on = kNoShard;

 private:
  EngineInfo info_;
};

struct TextRecorder final : TextSink {
  void OnPrompt(PromptEcho echo) override { prompts.push_back(std::move(echo)); }
  PromptEncoder LongPromptEncoder() override {
    return [this, during = while_encoding](PromptEcho echo) -> PromptTaken {
      if (during) during();
      return [this, echo = std::move(echo)]() mutable { OnPrompt(std::move(echo)); };
    };
  }
  void OnDelta(TextDelta&& delta) override {
    deltas.push_back(std::move(delta));
    if (on_delta) on_delta();
  }
  void OnEnd(const TokenUsage& usage) override {
    ended = true;
    total = usage;
  }
  std::vector<PromptEcho> prompts;
  std::vector<TextDelta> deltas;
  bool ended = false;
  TokenUsage total;
  std::function<void()> while_encoding;  // called on the pool
  std::function<void()> on_delta;
};

// A model with an engine that the test speaks for, and one generation of it.
class GenerationFixture : public testing::Test {
 protected:
  GenerationFixture() : shard_(0), hub_(shard_), metrics_(registry_, models_, {"m"}) {
    auto engine = std::make_unique<HeldEngine>();
    engine_ = engine.get();
    model_.id = "m";
    model_.engine = std::move(engine);
    model_.tokenizer = *Tokenizer::FromJson(
        R"({"version":"1.0","added_tokens":[],"normalizer":null,"post_processor":null,)"
        R"("decoder":null,"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"WordLevel",)"
        R"("unk_token":"u","vocab":{"u":0,"a":1,"b":2,"c":3,"d":4}}})");
    shard_.Start();
  }
  ~GenerationFixture() override {
    OnShard([&] { generation_.reset(); });
    hub_.Close();
    shard_.Stop();
  }

  void OnShard(const std::function<void()>& task) { net::RunOnShard(shard_, task); }

  // 1 is <s>, 2 is <|end|>, special both.
  void UseSentencePieceTokens() {
    constexpr std::string_view kFlags =
        R"("special":true,"single_word":false,"lstrip":false,"rstrip":false,"normalized":false)";
    auto made = Tokenizer::FromJson(
        R"({"added_tokens":[{"id":1,"content":"<s>",)" + std::string(kFlags) +
        R"(},{"id":2,"content":"<|end|>",)" + std::string(kFlags) +
        R"(}],"decoder":{"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"▁"},)"
        R"("content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]},)"
        R"("model":{"type":"BPE","byte_fallback":true,"unk_token":"<unk>","vocab":{"<unk>":0,"<s>":1,"<|end|>":2,)"
        R"("▁once":3,"▁upon":4,"user":5,"<0xF0>":6,"once":7},"merges":[]}})");
    ASSERT_TRUE(made.ok()) << made.status();
    model_.tokenizer = *std::move(made);
  }

  static GenerationPlan PlanOf(std::vector<TokenId> prompt, bool continues) {
    GenerationPlan plan = Plan(1);
    plan.prompts[0].ids = std::make_shared<const std::vector<TokenId>>(std::move(prompt));
    plan.continues_prompt = continues;
    return plan;
  }

  static GenerationPlan Plan(int32_t n) {
    GenerationPlan plan;
    plan.sampling = std::make_shared<const SamplingParams>();
    plan.options.n = n;
    GenerationPlan::Prompt prompt;
    prompt.ids = std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{1, 2, 3, 4});
    prompt.max_new_tokens = 9;
    plan.prompts.push_back(std::move(prompt));
    return plan;
  }

  void Start(GenerationPlan plan) {
    OnShard([&] {
      auto started = Generation::Start(model_, hub_, metrics_, std::move(plan), &sink_, pool_);
      ASSERT_TRUE(started.ok());
      generation_ = *std::move(started);
    });
  }

  // Tokens of the first stream, the last of which ends it.
  void Answer(std::vector<TokenId> tokens, FinishReason reason, TokenId matched = -1) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      std::vector<TokenDelta> batch(1);
      batch[0].stream = engine_->requests[0].stream;
      batch[0].tokens.push_back(tokens[i]);
      if (i + 1 == tokens.size()) {
        batch[0].finish = reason;
        batch[0].matched_token = matched;
      }
      hub_.Deliver(std::move(batch));
    }
    OnShard([] {});
  }

  std::string Text() const {
    std::string text;
    for (const TextDelta& delta : sink_.deltas) text += delta.text;
    return text;
  }

  // The engine's only message of that stream.
  void End(size_t request, FinishReason reason) {
    std::vector<TokenDelta> batch(1);
    batch[0].stream = engine_->requests[request].stream;
    batch[0].finish = reason;
    hub_.Deliver(std::move(batch));
    OnShard([] {});
  }

  net::Shard shard_;
  StreamHub hub_;
  Registry registry_;
  ModelRegistry models_;
  ServiceMetrics metrics_;
  ServingModel model_;
  HeldEngine* engine_ = nullptr;
  TextRecorder sink_;
  CpuPool* pool_ = nullptr;
  std::unique_ptr<Generation> generation_;
};

}  // namespace portico
