// Log-probabilities of tokens asked for by id are those that transformers computed in float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/llama/reference_engine_for_test.h"

namespace portico::llama {
namespace {

class LogprobIdsTest : public testing::Test, protected ReferenceEngine {
 protected:
  void SetUp() override {
    if (!Here()) GTEST_SKIP() << "the reference data is not here";
    Load("llama-gqa");
    Start({});
  }

  // The log-softmax of the reference's logits at the last position.
  std::vector<double> Expected(const ReferenceCase& c) const {
    const std::vector<float> row(c.logits.end() - static_cast<ptrdiff_t>(vocab_), c.logits.end());
    const double max = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (const float logit : row) sum += std::exp(logit - max);
    std::vector<double> expected;
    for (const float logit : row) expected.push_back(logit - max - std::log(sum));
    return expected;
  }
};

TEST_F(LogprobIdsTest, TheWholeVocabularyEqualsTheReference) {
  std::vector<TokenId> all(vocab_);
  std::iota(all.begin(), all.end(), 0);
  for (const ReferenceCase& c : cases_) {
    GenerateRequest request = Greedy(c.prompt, 1);
    request.return_logprobs = true;
    request.logprob_ids = std::make_shared<const std::vector<TokenId>>(all);
    const Answer answer = Ask(std::move(request));
    ASSERT_EQ(answer.logprobs.size(), 1u);
    const std::vector<TokenLogprob>& got = answer.logprobs[0].of_ids;
    ASSERT_EQ(got.size(), vocab_);
    const std::vector<double> expected = Expected(c);
    for (size_t i = 0; i < vocab_; ++i) {
      ASSERT_EQ(got[i].token, all[i]);
      ASSERT_NEAR(got[i].logprob, expected[i], 2e-4) << "token " << i;
    }
  }
}

TEST_F(LogprobIdsTest, PromptPositionsHaveThemToo) {
  GenerateRequest request = Greedy(cases_[1].prompt, 1);
  request.return_logprobs = true;
  request.prompt_logprobs_start = 0;
  request.logprob_ids = std::make_shared<const std::vector<TokenId>>(cases_[1].prompt);
  const Answer answer = Ask(std::move(request));
  ASSERT_EQ(answer.prompt_logprobs.size(), cases_[1].prompt.size() - 1);
  for (size_t i = 0; i < answer.prompt_logprobs.size(); ++i) {
    const PositionLogprobs& at = answer.prompt_logprobs[i];
    ASSERT_EQ(at.of_ids.size(), cases_[1].prompt.size());
    EXPECT_EQ(at.of_ids[i + 1].logprob, at.chosen.logprob);
  }
}

}  // namespace
}  // namespace portico::llama
