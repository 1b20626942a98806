#include "service/generation.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/loop/run_on_shard_for_test.h"

namespace portico {
namespace {

// Keeps what is submitted; the test says what the engine answers, and when.
class HeldEngine final : public Engine {
 public:
  HeldEngine() {
    info_.vocab_size = 8;
    info_.context_length = 100;
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

struct Recorder final : TextSink {
  void OnPrompt(PromptEcho echo) override { prompts.push_back(std::move(echo)); }
  void OnDelta(TextDelta&& delta) override { deltas.push_back(std::move(delta)); }
  void OnEnd(const TokenUsage& usage) override {
    ended = true;
    total = usage;
  }
  std::vector<PromptEcho> prompts;
  std::vector<TextDelta> deltas;
  bool ended = false;
  TokenUsage total;
};

class GenerationTest : public testing::Test {
 protected:
  GenerationTest() : shard_(0), hub_(shard_), metrics_(registry_, models_, {"m"}) {
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
  ~GenerationTest() override {
    OnShard([&] { generation_.reset(); });
    hub_.Close();
    shard_.Stop();
  }

  void OnShard(const std::function<void()>& task) { net::RunOnShard(shard_, task); }

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
      auto started = Generation::Start(model_, hub_, metrics_, std::move(plan), &sink_);
      ASSERT_TRUE(started.ok());
      generation_ = *std::move(started);
    });
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
  Recorder sink_;
  std::unique_ptr<Generation> generation_;
};

// A stream that was aborted in the queue, with logprob_start_len 2, ended the process: the report of the prompt left
// out the first of no log-probabilities.
TEST_F(GenerationTest, AStreamMayEndBeforeItsPromptIsComputedWhateverItAskedFor) {
  for (const FinishReason reason :
       {FinishReason::kAbort, FinishReason::kError, FinishReason::kLength, FinishReason::kStop}) {
    for (const int32_t start : {-1, 0, 1, 3}) {
      engine_->requests.clear();
      sink_ = {};
      GenerationPlan plan = Plan(1);
      plan.options.logprobs = true;
      plan.options.top_logprobs = 2;
      plan.options.stop = {"x"};
      plan.options.return_token_ids = true;
      plan.echo = true;
      plan.prompt_logprobs_start = start;
      plan.logprob_ids = std::make_shared<const std::vector<TokenId>>(std::vector<TokenId>{1});
      Start(std::move(plan));
      End(0, reason);
      ASSERT_TRUE(sink_.ended);
      ASSERT_EQ(sink_.prompts.size(), 1u);
      EXPECT_EQ(sink_.prompts[0].logprobs.size(), start < 0 ? 0u : 1u);
      ASSERT_EQ(sink_.deltas.size(), 1u);
      EXPECT_EQ(sink_.deltas[0].finish, reason);
      EXPECT_EQ(sink_.total.prompt_tokens, 4);
    }
  }
}

TEST_F(GenerationTest, ChoicesShareTheirParametersAndTellTheShard) {
  GenerationPlan plan = Plan(3);
  const SamplingParams* shared = plan.sampling.get();
  Start(std::move(plan));
  ASSERT_EQ(engine_->requests.size(), 3u);
  for (const GenerateRequest& request : engine_->requests) {
    EXPECT_EQ(request.sampling.get(), shared);
    EXPECT_EQ(request.max_new_tokens, 9);
    EXPECT_EQ(request.extras, nullptr);
  }
  OnShard([&] { generation_->Abort(); });
  EXPECT_EQ(engine_->aborted.size(), 3u);
  EXPECT_EQ(engine_->aborted_on, 0);
}

TEST_F(GenerationTest, AnEngineOnTheShardDeliversWithoutAPost) {
  Start(Plan(1));
  OnShard([&] {
    std::vector<TokenDelta> batch(1);
    batch[0].stream = engine_->requests[0].stream;
    batch[0].tokens.push_back(2);
    batch[0].finish = FinishReason::kLength;
    hub_.DeliverHere(std::move(batch));
    EXPECT_TRUE(sink_.ended);
  });
  EXPECT_EQ(sink_.total.completion_tokens, 1);
}

}  // namespace
}  // namespace portico
