#include "service/generation.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/loop/run_on_shard_for_test.h"
#include "tokenizer/decode/stop_matcher.h"

namespace portico {
namespace {

// Keeps what is submitted; the test says what the engine answers, and when.
class HeldEngine final : public Engine {
 public:
  HeldEngine() {
    info_.vocab_size = 8;
    info_.context_length = 100;
    info_.can.disaggregation = true;
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
      auto started = Generation::Start(model_, hub_, metrics_, std::move(plan), &sink_);
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

TEST_F(GenerationTest, NoTwoAnswersOfAPairsRequestMeetInTheSameRoom) {
  // Several prompts with one room were refused.
  GenerationPlan plan = Plan(2);
  plan.prompts.push_back(plan.prompts.front());
  plan.prompts.push_back(plan.prompts.front());
  auto extras = std::make_shared<RequestExtras>();
  extras->bootstrap_host = "h";
  extras->bootstrap_room = 70;
  plan.extras = std::move(extras);
  Start(std::move(plan));
  std::vector<int64_t> rooms;
  for (const GenerateRequest& request : engine_->requests) {
    EXPECT_EQ(request.extras->bootstrap_host, "h");
    rooms.push_back(*request.extras->bootstrap_room +
                    request.choice * request.extras->bootstrap_room_step);
  }
  EXPECT_EQ(rooms, (std::vector<int64_t>{70, 73, 71, 74, 72, 75}));
}

TEST_F(GenerationTest, AnAnswerThatContinuesItsPromptKeepsItsFirstSpace) {
  UseSentencePieceTokens();
  Start(PlanOf({1, 3}, /*continues=*/true));
  Answer({4, 3}, FinishReason::kLength);
  EXPECT_EQ(Text(), " upon once");
}

TEST_F(GenerationTest, AnAnswerThatBeginsAMessageBeginsWithoutTheSpaceOfItsTokenizer) {
  UseSentencePieceTokens();
  Start(PlanOf({1, 3}, /*continues=*/false));
  Answer({4, 3}, FinishReason::kLength);
  EXPECT_EQ(Text(), "upon once");
}

// It ran to the length limit.
TEST_F(GenerationTest, AStopStringIsFoundInASpecialTokenThatIsNotShown) {
  UseSentencePieceTokens();
  for (const bool keep : {false, true}) {
    engine_->requests.clear();
    sink_ = {};
    GenerationPlan plan = PlanOf({1, 3}, true);
    plan.stops = std::make_shared<const StopStrings>(std::vector<std::string>{"<|end|>user"});
    plan.options.no_stop_trim = keep;
    Start(std::move(plan));
    Answer({4, 2, 3, 2, 5, 3}, FinishReason::kLength);
    EXPECT_EQ(Text(), keep ? " upon onceuser" : " upon once");
    EXPECT_EQ(sink_.deltas.back().finish, FinishReason::kStop);
    EXPECT_EQ(sink_.deltas.back().matched_stop.text, "<|end|>user");
    ASSERT_TRUE(sink_.ended);
    EXPECT_EQ(sink_.total.completion_tokens, 5);
    ASSERT_NE(engine_->requests[0].extras, nullptr) << "engines that look for them too are told";
    EXPECT_EQ(engine_->requests[0].extras->stop, std::vector<std::string>{"<|end|>user"});
  }
}

// As in SGLang, which looks at tokens first.
TEST_F(GenerationTest, AStopTokenEndsTheAnswerBeforeAStopStringThatSpellsIt) {
  UseSentencePieceTokens();
  GenerationPlan plan = PlanOf({1, 3}, true);
  plan.stops = std::make_shared<const StopStrings>(std::vector<std::string>{"<|end|>"});
  plan.options.no_stop_trim = true;
  plan.options.skip_special_tokens = false;
  Start(std::move(plan));
  Answer({4, 2}, FinishReason::kStop, /*matched=*/2);
  EXPECT_EQ(Text(), " upon<|end|>");
  EXPECT_EQ(sink_.deltas.back().matched_stop.token, 2);
  EXPECT_EQ(sink_.deltas.back().matched_stop.text, "");
}

TEST_F(GenerationTest, ParsersSeeTheMarkersAndStopStringsSeeEverySpecialToken) {
  UseSentencePieceTokens();
  const absl::flat_hash_set<TokenId> markers = {1};
  auto output = std::make_shared<OutputPlan>();
  output->markers = &markers;
  GenerationPlan plan = PlanOf({3}, true);
  plan.output = output;
  plan.stops = std::make_shared<const StopStrings>(std::vector<std::string>{"<|end|>user"});
  Start(std::move(plan));
  Answer({4, 1, 2, 3, 2, 5}, FinishReason::kLength);
  EXPECT_EQ(Text(), " upon<s> once");
  EXPECT_EQ(sink_.deltas.back().matched_stop.text, "<|end|>user");
}

TEST_F(GenerationTest, LogprobsSpellWhatATokenAddsWhereItStands) {
  UseSentencePieceTokens();
  for (const bool continues : {true, false}) {
    engine_->requests.clear();
    sink_ = {};
    GenerationPlan plan = PlanOf({1, 3}, continues);
    plan.options.logprobs = true;
    plan.prompt_logprobs_start = 0;
    Start(std::move(plan));
    std::vector<TokenDelta> batch(1);
    batch[0].stream = engine_->requests[0].stream;
    batch[0].prompt_logprobs.resize(1);
    batch[0].prompt_logprobs[0].chosen = {3, -1.0f};
    for (TokenId id : {3, 2, 6}) {
      batch[0].tokens.push_back(id);
      PositionLogprobs& position = batch[0].logprobs.emplace_back();
      position.chosen = {id, -0.5f};
      position.top = {{3, -0.5f}, {7, -0.75f}};
    }
    batch[0].finish = FinishReason::kLength;
    hub_.Deliver(std::move(batch));
    OnShard([] {});
    ASSERT_EQ(sink_.prompts.size(), 1u);
    ASSERT_EQ(sink_.prompts[0].logprobs.size(), 2u);
    EXPECT_EQ(sink_.prompts[0].logprobs[0].chosen.text, "<s>");
    EXPECT_EQ(sink_.prompts[0].logprobs[1].chosen.text, "once");
    std::vector<TextPositionLogprobs> positions;
    for (TextDelta& delta : sink_.deltas) {
      for (TextPositionLogprobs& position : delta.logprobs) positions.push_back(position);
    }
    ASSERT_EQ(positions.size(), 3u);
    const std::string first = continues ? " once" : "once";
    EXPECT_EQ(positions[0].chosen.text, first);
    EXPECT_EQ(positions[0].chosen.bytes, first);
    EXPECT_EQ(positions[0].top[0].text, first);
    EXPECT_EQ(positions[0].top[1].text, "once");
    EXPECT_EQ(positions[1].chosen.text, "<|end|>");
    EXPECT_TRUE(positions[1].hidden);
    EXPECT_FALSE(positions[0].hidden);
    EXPECT_EQ(positions[1].top[0].text, " once") << "another token stands before it";
    EXPECT_EQ(positions[2].chosen.text, "bytes:\\xf0");
    EXPECT_EQ(positions[2].chosen.bytes, "\xF0");
  }
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
