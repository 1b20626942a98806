// Constrained answers of the demo model, with the tokens that their grammars force computed together and one by one.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/llama/demo_for_test.h"
#include "engine/llama/engine_for_test.h"
#include "engine/sampler/grammar_constraint.h"
#include "grammar/compile/grammar_pack.h"
#include "grammar/compile/grammar_text.h"
#include "grammar/mask/token_table.h"
#include "tokenizer/tokenizer.h"

namespace portico::llama {
namespace {

class ForcedAnswersTest : public testing::TestWithParam<const char*>, protected TestEngine {
 protected:
  void StartDemo(LlamaEngineOptions options) {
    LoadModel(DemoFolder(), GetParam());
    ASSERT_NE(model_, nullptr);
    Start(options);
  }

  void SetUp() override {
    const auto tokenizer = Tokenizer::Load(DemoFolder());
    ASSERT_TRUE(tokenizer.ok()) << MessageOf(tokenizer.status());
    vocabulary_ = grammar::MakeVocabulary(**tokenizer, (*tokenizer)->vocab_size(), {kDemoEnd});
    table_ = std::make_shared<grammar::TokenTable>(grammar::MakeTokenizerInfo(vocabulary_));
    for (const auto& [kind, text] : {
             std::pair(grammar::GrammarKind::kJsonSchema,
                       R"({"type": "object", "additionalProperties": false,
                           "required": ["customer_identification_number", "is_it_paid"],
                           "properties": {"customer_identification_number": {"type": "integer"},
                                          "is_it_paid": {"type": "boolean"}}})"),
             std::pair(grammar::GrammarKind::kRegex, "xkqzjv(wq|vw)zzkqxj[0-9]{1,9}"),
             std::pair(grammar::GrammarKind::kRegex,
                       "The capital of France is (Paris|Rome)\\. It is a large city\\."),
             std::pair(grammar::GrammarKind::kRegex, "[a-z ]{1,40}"),
         }) {
      grammar::GrammarText asked{kind, text};
      asked.compact = true;
      const auto compiled = grammar::CompileText(asked, vocabulary_, table_->tokens);
      ASSERT_TRUE(compiled.ok()) << MessageOf(compiled.status());
      auto read = grammar::CompiledGrammar::Read(grammar::PackGrammar(*compiled), table_);
      ASSERT_TRUE(read.ok()) << MessageOf(read.status());
      auto constraint = std::make_shared<Constraint>();
      constraint->field = "regex";
      constraint->compiled = std::make_shared<const GrammarConstraint>(*std::move(read));
      constraints_.push_back(std::move(constraint));
    }
  }

  // One of many kinds.
  GenerateRequest Request(size_t number) const {
    GenerateRequest request = Greedy(questions_[number % questions_.size()].prompt,
                                     number % 7 == 3 ? static_cast<int32_t>(number) : 60);
    request.constraint = constraints_[number % constraints_.size()];
    request.return_logprobs = true;
    request.top_logprobs = 3;
    request.choice = static_cast<int32_t>(number % 3);
    SamplingParams& sampling = OwnSampling(&request);
    sampling.ignore_eos = number % 5 == 0;
    sampling.temperature = number % 2 == 0 ? 0.0f : 1.0f;
    sampling.seed = number;
    if (number % 6 == 1) sampling.frequency_penalty = 1.5f;
    if (number % 6 == 2) sampling.repetition_penalty = 1.2f;
    if (number % 6 == 4) sampling.min_new_tokens = 20;
    if (number % 6 == 5) sampling.stop_token_ids = {87, 75};
    if (number % 8 == 6) request.prompt_logprobs_start = 0;
    return request;
  }

  static void ExpectSame(const Answer& answer, const Answer& expected, size_t number) {
    EXPECT_EQ(answer.tokens, expected.tokens) << number;
    EXPECT_EQ(answer.terminals, 1);
    EXPECT_EQ(answer.after_end, 0);
    EXPECT_EQ(answer.last.finish, expected.last.finish) << number;
    EXPECT_EQ(answer.last.matched_token, expected.last.matched_token) << number;
    EXPECT_EQ(MessageOf(answer.last.error), MessageOf(expected.last.error)) << number;
    EXPECT_EQ(answer.last.usage.completion_tokens, expected.last.usage.completion_tokens);
    EXPECT_EQ(answer.last.usage.prompt_tokens, expected.last.usage.prompt_tokens);
    EXPECT_EQ(answer.prompt_logprobs.size(), expected.prompt_logprobs.size());
    ASSERT_EQ(answer.logprobs.size(), expected.logprobs.size()) << number;
    for (size_t i = 0; i < answer.logprobs.size(); ++i) {
      EXPECT_EQ(answer.logprobs[i].chosen.token, expected.logprobs[i].chosen.token);
      EXPECT_EQ(answer.logprobs[i].chosen.logprob, expected.logprobs[i].chosen.logprob) << number;
      ASSERT_EQ(answer.logprobs[i].top.size(), expected.logprobs[i].top.size());
      for (size_t k = 0; k < answer.logprobs[i].top.size(); ++k) {
        EXPECT_EQ(answer.logprobs[i].top[k].token, expected.logprobs[i].top[k].token);
        EXPECT_EQ(answer.logprobs[i].top[k].logprob, expected.logprobs[i].top[k].logprob);
      }
    }
  }

  const std::vector<DemoQuestion> questions_ = DemoQuestions();
  grammar::Vocabulary vocabulary_;
  std::shared_ptr<const grammar::TokenTable> table_;
  std::vector<std::shared_ptr<const Constraint>> constraints_;
};

constexpr size_t kForcedRequests = 48;

TEST_P(ForcedAnswersTest, AreTheSameAsOneTokenAtATime) {
  LlamaEngineOptions options;
  options.forced_tokens = false;
  StartDemo(options);
  std::vector<Answer> expected;
  for (size_t i = 0; i < kForcedRequests; ++i) expected.push_back(Ask(Request(i)));
  EXPECT_EQ(engine_->load().forced_tokens + engine_->load().refused_forced_tokens, 0u);
  const uint64_t steps = engine_->load().steps;
  options.forced_tokens = true;
  StartDemo(options);
  for (size_t i = 0; i < kForcedRequests; ++i) ExpectSame(Ask(Request(i)), expected[i], i);
  EXPECT_GT(engine_->load().forced_tokens, 50u);
  EXPECT_LT(engine_->load().steps, steps);
  ExpectIdle();
  options.max_running_requests = 12;
  options.max_total_tokens = 256;  // the youngest must make room
  options.chunked_prefill_size = 64;
  StartDemo(options);
  for (int round = 0; round < 3; ++round) {
    CollectingSink sink;
    std::vector<StreamId> streams;
    for (size_t i = 0; i < kForcedRequests; ++i) {
      GenerateRequest request = Request(i);
      streams.push_back(request.stream);
      if (round == 1 && i == 0) sink.HoldAt(request.stream, 2);
      ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
    }
    if (round == 1) {  // with a retraction of all that run
      sink.WaitForTokens(streams[0], 2);
      EXPECT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kRetract}).ok());
      sink.Release();
      EXPECT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
    }
    sink.WaitForEnds(kForcedRequests);
    for (size_t i = 0; i < kForcedRequests; ++i) ExpectSame(sink.of(streams[i]), expected[i], i);
  }
  EXPECT_GT(engine_->load().retractions, 0u);
  EXPECT_GT(engine_->load().forced_tokens, 0u);
  ExpectIdle();
}

INSTANTIATE_TEST_SUITE_P(Weights, ForcedAnswersTest, testing::Values("float32", "auto"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace portico::llama
