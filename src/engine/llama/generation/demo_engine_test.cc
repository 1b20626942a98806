// The engine on the bundled demo model: what a client sees must not depend on who else is there, on
// what the cache holds, or on how often a request has had to make room.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#include "engine/llama/engine_for_test.h"
#include "engine/llama/generation/demo_for_test.h"

namespace portico::llama {
namespace {

class DemoEngineTest : public testing::Test, protected TestEngine {
 protected:
  void StartDemo(const LlamaEngineOptions& options, const std::string& dtype = "auto",
                 const std::string& quantization = "") {
    LoadModel(DemoFolder(), dtype, quantization);
    ASSERT_NE(model_, nullptr);
    Start(options);
  }

  // With the log-probabilities of prompt and answer.
  GenerateRequest Question(size_t k) const {
    const DemoQuestion& question = questions_[k % questions_.size()];
    GenerateRequest request = Greedy(question.prompt, 40);
    OwnSampling(&request).ignore_eos = false;
    request.return_logprobs = true;
    request.prompt_logprobs_start = 0;
    return request;
  }
  // Without those of the prompt, for which it would be computed anew.
  GenerateRequest PlainQuestion(size_t k) const {
    GenerateRequest request = Question(k);
    request.prompt_logprobs_start = -1;
    return request;
  }

  void ExpectRight(size_t k, const Answer& answer, const char* when) const {
    std::vector<TokenId> expected = questions_[k % questions_.size()].answer;
    expected.push_back(kDemoEnd);
    EXPECT_EQ(answer.tokens, expected) << when << ", question " << k % questions_.size();
    EXPECT_EQ(answer.terminals, 1);
    EXPECT_EQ(answer.after_end, 0);
    EXPECT_EQ(answer.last.finish, FinishReason::kStop);
    EXPECT_EQ(answer.last.matched_token, kDemoEnd);
  }

  std::vector<Answer> AskTogether(std::vector<GenerateRequest> requests) {
    CollectingSink sink;
    std::vector<StreamId> streams;
    for (GenerateRequest& request : requests) {
      streams.push_back(request.stream);
      EXPECT_TRUE(engine_->Submit(std::move(request), &sink).ok());
    }
    sink.WaitForEnds(streams.size());
    std::vector<Answer> answers;
    for (const StreamId stream : streams) answers.push_back(sink.of(stream));
    return answers;
  }

  static std::vector<TokenId> Noise(std::mt19937* random, size_t size) {
    std::vector<TokenId> tokens(size);
    for (TokenId& token : tokens) token = static_cast<TokenId>((*random)() % 3000);
    return tokens;
  }

  const std::vector<DemoQuestion> questions_ = DemoQuestions();
};

double MostDifferent(const std::vector<PositionLogprobs>& a,
                     const std::vector<PositionLogprobs>& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    EXPECT_EQ(a[i].chosen.token, b[i].chosen.token);
    most = std::max(most, std::abs(double{a[i].chosen.logprob} - double{b[i].chosen.logprob}));
  }
  return most;
}

// Seen: 2e-6, 0.002 and 0.007. With q8_0 activations are rounded to eight bits, block by block: a
// difference in the last bits of one can move a whole block.
struct Arithmetic {
  const char* name;
  const char* dtype;
  const char* quantization;
  double tolerance;
};

class DemoDeterminismTest : public DemoEngineTest,
                            public testing::WithParamInterface<Arithmetic> {};

TEST_P(DemoDeterminismTest, AnswersAndLogprobsAreTheSameAloneAmongOthersAndAfterAnyHistory) {
  LlamaEngineOptions options;
  options.chunked_prefill_size = 96;
  StartDemo(options, GetParam().dtype, GetParam().quantization);
  std::vector<Answer> alone;
  for (size_t k = 0; k < questions_.size(); ++k) {
    alone.push_back(Ask(Question(k)));
    ExpectRight(k, alone.back(), "alone");
  }
  double most = 0;
  const auto compare = [&](size_t k, const Answer& answer, const char* when) {
    const Answer& first = alone[k % alone.size()];
    ExpectRight(k, answer, when);
    most = std::max(most, MostDifferent(answer.logprobs, first.logprobs));
    if (!answer.prompt_logprobs.empty()) {
      most = std::max(most, MostDifferent(answer.prompt_logprobs, first.prompt_logprobs));
    }
  };

  std::mt19937 random(3);
  for (int round = 0; round < 2; ++round) {
    std::vector<GenerateRequest> requests;
    for (size_t i = 0; i < 32; ++i) {
      requests.push_back(i % 3 == 0   ? Question(i)
                         : i % 3 == 1 ? PlainQuestion(i)
                                      : Greedy(Noise(&random, 1 + random() % 150), 20));
    }
    const std::vector<Answer> answers = AskTogether(std::move(requests));
    for (size_t i = 0; i < 32; ++i) {
      if (i % 3 != 2) compare(i, answers[i], "among others");
    }
  }
  for (size_t k = 0; k < questions_.size(); ++k) {
    const Answer cached = Ask(PlainQuestion(k));
    EXPECT_EQ(cached.last.usage.cached_tokens,
              static_cast<int32_t>(questions_[k].prompt.size()) - 1);
    compare(k, cached, "from the cache");
  }
  EXPECT_LE(most, GetParam().tolerance);
  RecordProperty("max_difference", std::to_string(most));
  ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Weights, DemoDeterminismTest,
                         testing::Values(Arithmetic{"float32", "float32", "", 1e-3},
                                         Arithmetic{"bfloat16", "bfloat16", "", 0.05},
                                         Arithmetic{"q8_0", "auto", "q8_0", 0.1}),
                         [](const auto& test) { return test.param.name; });

// A question about an answer's tokens must find them as probable as they were when they were drawn.
TEST_F(DemoEngineTest, OutputLogprobsAreThePromptLogprobsOfTheSameTokens) {
  StartDemo({}, "float32");
  for (size_t k = 0; k < questions_.size(); ++k) {
    const Answer drawn = Ask(Question(k));
    ASSERT_EQ(drawn.logprobs.size(), drawn.tokens.size());
    std::vector<TokenId> all = questions_[k].prompt;
    all.insert(all.end(), drawn.tokens.begin(), drawn.tokens.end());
    GenerateRequest request = Greedy(all, 0);
    request.prompt_logprobs_start = static_cast<int32_t>(questions_[k].prompt.size());
    const Answer read = Ask(std::move(request));
    EXPECT_LE(MostDifferent(read.prompt_logprobs, drawn.logprobs), 1e-3);
  }
}

TEST_F(DemoEngineTest, RequestsThatMustMakeRoomForOthersAnswerAllTheSame) {
  LlamaEngineOptions options;
  options.max_running_requests = 8;
  options.max_total_tokens = 96;  // three or four questions
  options.chunked_prefill_size = 16;
  StartDemo(options, "float32");
  std::vector<GenerateRequest> requests;
  for (size_t k = 0; k < 20; ++k) requests.push_back(PlainQuestion(k));
  const std::vector<Answer> answers = AskTogether(std::move(requests));
  for (size_t k = 0; k < answers.size(); ++k) ExpectRight(k, answers[k], "in a small cache");
  // Two that are both let in and grow until there is room for one only.
  std::mt19937 random(5);
  const std::vector<GenerateRequest> growing = {Greedy(Noise(&random, 10), 60),
                                                Greedy(Noise(&random, 10), 60)};
  std::vector<Answer> alone;
  for (GenerateRequest request : growing) {
    request.stream = NextStreamId();
    alone.push_back(Ask(std::move(request)));
  }
  const std::vector<Answer> together = AskTogether(growing);
  EXPECT_EQ(together[0].tokens, alone[0].tokens);
  EXPECT_EQ(together[1].tokens, alone[1].tokens);
  EXPECT_GT(engine_->load().retractions, 0u);
  ExpectIdle();
}

TEST_F(DemoEngineTest, AConversationIsComputedFromWhereItHasGoneOn) {
  StartDemo({});
  std::vector<TokenId> conversation;
  int32_t known = 0;
  for (const DemoQuestion& question : questions_) {
    conversation.insert(conversation.end(), question.prompt.begin(), question.prompt.end());
    GenerateRequest request = Greedy(conversation, 8);
    const Answer answer = Ask(std::move(request));
    // The last token drawn has not been computed.
    EXPECT_EQ(answer.last.usage.cached_tokens, known);
    conversation.insert(conversation.end(), answer.tokens.begin(), answer.tokens.end());
    known = static_cast<int32_t>(conversation.size()) - 1;
  }
  EXPECT_EQ(engine_->load().kv_cells_cached, known);
  ExpectIdle();
}

// A long prompt is one step; its client may leave at any moment of it.
TEST_F(DemoEngineTest, APromptAbortedWhileItIsComputedLeavesNoTrace) {
  LlamaEngineOptions options;
  options.chunked_prefill_size = 2048;
  StartDemo(options, "float32");
  std::mt19937 random(11);
  for (int round = 0; round < 12; ++round) {
    CollectingSink sink;
    GenerateRequest request = Greedy(Noise(&random, 600), 1000);
    const StreamId stream = request.stream;
    ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20000));
    engine_->Abort(stream, kNoShard);
    sink.WaitForEnds(1);
    EXPECT_EQ(sink.of(stream).last.finish, FinishReason::kAbort);
    EXPECT_EQ(sink.of(stream).terminals, 1);
    ExpectIdle();
  }
  for (size_t k = 0; k < questions_.size(); ++k) ExpectRight(k, Ask(Question(k)), "afterwards");
  EXPECT_TRUE(ControlAndWait(*engine_, FlushCacheControl{}).ok());
  EXPECT_EQ(engine_->load().kv_cells_cached, 0);
}

}  // namespace
}  // namespace portico::llama
