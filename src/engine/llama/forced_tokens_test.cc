// Tokens that a grammar forces: which steps compute them, and that answers stay as they are one token at a time.
#include <gtest/gtest.h>

#include "base/sanitized_for_test.h"
#include "engine/llama/scheduler_for_test.h"

namespace portico::llama {
namespace {

class ForcedTokensTest : public SchedulerTest {};

TEST_F(ForcedTokensTest, AreComputedWithTheLastTokenAndWrongOnesGiveTheirCellsBack) {
  Start({4, 80, 20, true}, 100);
  const StreamId stream = Add(Range(0, 5), 20);
  RunStep();
  const Tokens answer = Answer(Range(0, 5), 20);
  const Step step = scheduler_->Next();
  ASSERT_EQ(step.chunks.size(), 1u);
  EXPECT_EQ(step.chunks[0].count, 1);
  step.chunks[0].request->forced = {answer[6], answer[7], kWrongToken, answer[9]};
  scheduler_->Undo(step);
  const std::vector<Ran> ran = RunStep();
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(ran[0].count, 5);
  EXPECT_EQ(ran[0].rows, 5);
  EXPECT_EQ(scheduler_->Any()->tokens, Tokens(answer.begin(), answer.begin() + 9));
  EXPECT_EQ(cache_->used(), 8);
  EXPECT_EQ(right_, 2);
  EXPECT_EQ(wrong_, 2);
  RunAll();
  EXPECT_EQ(finished_[stream], answer);
}

TEST_F(ForcedTokensTest, TakeNoMoreThanHalfOfWhatPromptsMayTake) {
  Start({2, 80, 10, true}, 2000);
  most_forced_ = 100;
  const StreamId first = Add(Range(0, 5), 500);
  const StreamId prompt = Add(Range(1000, 400), 1, 1);
  while (finished_.count(prompt) == 0) {
    const std::vector<Ran> step = RunStep();
    EXPECT_LE(CountOf(step, first), 5) << "rows";
    if (scheduler_->running() == 2 && step.size() == 2) {
      EXPECT_GT(CountOf(step, prompt), 0);
    }
  }
  EXPECT_GT(right_, 0);
  RunAll();
  EXPECT_EQ(finished_[first], Answer(Range(0, 5), 500));
}

// They went to the first one's tokens, and the second one was retracted.
TEST_F(ForcedTokensTest, LeaveEveryRequestItsRoomToGrow) {
  const Tokens answer = Answer(Range(0, 9), 60);
  for (const auto& [others_tokens, forced] : {std::pair(20, 0), std::pair(8, 11)}) {
    memory_ = {};
    Start({8, 512, 64, true}, 70);
    const StreamId first = Add(Range(0, 9), 60);
    const StreamId second = Add(Range(100, 9), others_tokens);
    RunStep();
    const Step step = scheduler_->Next();
    ASSERT_EQ(step.chunks.size(), 2u);
    ASSERT_EQ(step.chunks[0].request->stream, first);
    step.chunks[0].request->forced.assign(answer.begin() + 10, answer.begin() + 40);
    scheduler_->Undo(step);
    const std::vector<Ran> ran = RunStep();
    EXPECT_EQ(CountOf(ran, first), 1 + forced) << "of 50 cells beside 32 and those of the other";
    EXPECT_EQ(CountOf(ran, second), 1);
    RunAll();
    EXPECT_EQ(scheduler_->retractions(), 0u);
    EXPECT_EQ(finished_[first], answer);
    EXPECT_EQ(finished_[second], Answer(Range(100, 9), others_tokens));
  }
}

// Where a step is neither computed nor undone.
TEST_F(ForcedTokensTest, AreNotSharedUntilTheyAreDrawn) {
  Start({4, 80, 20, true}, 100);
  const StreamId stream = Add(Range(0, 5), 20);
  RunStep();
  const Step undone = scheduler_->Next();
  ASSERT_EQ(undone.chunks.size(), 1u);
  undone.chunks[0].request->forced = {1, 2, 3};
  scheduler_->Undo(undone);
  const Step step = scheduler_->Next();
  EXPECT_EQ(step.chunks[0].forced, 3);
  EXPECT_NE(scheduler_->Finish(stream, /*keep=*/true), nullptr);
  EXPECT_EQ(cache_->used(), 0);
  EXPECT_EQ(cache_->cached(), 5) << "the prompt";
}

// Right and wrong ones, in little memory: every answer is what it is one token at a time.
TEST_F(ForcedTokensTest, ChangeNoAnswerInThreeHundredSchedules) {
  uint64_t retractions = 0;
  for (uint32_t seed = 0; seed < (kSanitized ? 30u : 300u); ++seed) {
    random_.seed(seed);
    memory_ = {};
    finished_.clear();
    too_long_.clear();
    Start({6, 64, 24, true}, 120, seed % 4 != 3 ? 6 : 0);
    most_forced_ = 1 + seed % 20;
    std::map<StreamId, std::pair<Tokens, int32_t>> asked;
    for (int round = 0; round < 100; ++round) {
      if (random_() % 3 == 0 && scheduler_->waiting() < 20) {
        Tokens prompt(1 + random_() % 50);
        for (TokenId& token : prompt) token = static_cast<TokenId>(random_() % 2);
        const auto count = static_cast<int32_t>(1 + random_() % 60);
        const int32_t logprob =
            random_() % 4 == 0 ? 1 + static_cast<int32_t>(random_() % prompt.size()) : -1;
        asked[Add(prompt, count, logprob)] = {prompt, count};
      }
      if (random_() % 12 == 0 && !asked.empty()) {
        const auto it = std::next(asked.begin(), static_cast<ptrdiff_t>(random_() % asked.size()));
        if (scheduler_->Finish(it->first, random_() % 2 == 0) != nullptr) asked.erase(it);
      }
      if (random_() % 40 == 0) scheduler_->RetractAll();
      RunStep();
      ASSERT_LE(memory_.used(), 120);
    }
    RunAll();
    EXPECT_TRUE(too_long_.empty());
    for (const auto& [stream, question] : asked) {
      ASSERT_EQ(finished_[stream], Answer(question.first, question.second)) << "seed " << seed;
    }
    retractions += scheduler_->retractions();
    cache_->Flush();
    EXPECT_EQ(memory_.used(), 0);
  }
  EXPECT_GT(retractions, 0u);
  EXPECT_GT(right_, 300);
  EXPECT_GT(wrong_, 50);
}

}  // namespace
}  // namespace portico::llama
