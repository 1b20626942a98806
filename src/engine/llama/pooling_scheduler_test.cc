#include "engine/llama/pooling_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace portico::llama {
namespace {

using ::testing::ElementsAre;
using ::testing::Lt;

class PoolingSchedulerTest : public testing::Test {
 protected:
  // One request with texts of these sizes; the first one's stream.
  StreamId Add(const std::vector<size_t>& sizes) {
    std::vector<std::unique_ptr<ScheduledText>> request;
    const StreamId first = next_;
    for (const size_t size : sizes) {
      auto text = std::make_unique<ScheduledText>();
      text->request.stream = next_++;
      text->request.tokens = std::make_shared<const std::vector<TokenId>>(size, 7);
      request.push_back(std::move(text));
    }
    scheduler_->Add(std::move(request));
    return first;
  }

  // Computes a step: the sizes of its pieces.
  std::vector<int32_t> Step() {
    std::vector<int32_t> sizes;
    for (const std::vector<int32_t>& batch : Batches()) {
      sizes.insert(sizes.end(), batch.begin(), batch.end());
    }
    return sizes;
  }

  // Computes a step: the sizes of its pieces, batch by batch.
  std::vector<std::vector<int32_t>> Batches() {
    std::vector<std::vector<int32_t>> sizes;
    for (const Batch& batch : scheduler_->Next()) {
      sizes.emplace_back();
      for (const Piece& piece : batch.pieces) sizes.back().push_back(piece.count);
      scheduler_->Computed(batch);
      for (const Piece& piece : batch.pieces) {
        if (piece.text->left() > 0) continue;
        ended_.push_back(piece.text->request.stream);
        scheduler_->Finish(ended_.back());
      }
    }
    return sizes;
  }

  // Steps until the text has ended: how many.
  int StepsUntil(StreamId stream) {
    int steps = 0;
    while (std::find(ended_.begin(), ended_.end(), stream) == ended_.end()) {
      Step();
      ++steps;
    }
    return steps;
  }

  void Options(int32_t batch_tokens, bool pieces, size_t max_batches = 1) {
    scheduler_ = std::make_unique<PoolingScheduler>(
        PoolingSchedulerOptions{batch_tokens, 8, pieces, 60, max_batches, 300});
  }

  std::unique_ptr<PoolingScheduler> scheduler_ =
      std::make_unique<PoolingScheduler>(PoolingSchedulerOptions{100, 8, false, 100, 1, 100});
  StreamId next_ = 1;
  std::vector<StreamId> ended_;
};

TEST_F(PoolingSchedulerTest, SaysWhetherWhatWaitsFillsAStep) {
  Options(100, false, 2);
  Add({90, 60});
  EXPECT_FALSE(scheduler_->fills_step());
  Add({50});
  EXPECT_TRUE(scheduler_->fills_step());
  Step();
  EXPECT_FALSE(scheduler_->fills_step());
}

TEST_F(PoolingSchedulerTest, FillsAStepWithTheShortestTextsFirst) {
  Add({60, 10, 90, 20});
  EXPECT_THAT(Step(), ElementsAre(10, 20, 60));
  EXPECT_THAT(Step(), ElementsAre(90));
  EXPECT_TRUE(scheduler_->empty());
}

TEST_F(PoolingSchedulerTest, AStepTakesNoMoreTextsThanItMay) {
  Add(std::vector<size_t>(20, 1));
  EXPECT_EQ(Step().size(), 8u);
}

TEST_F(PoolingSchedulerTest, ALongTextIsComputedAlone) {
  Add({500, 3});
  EXPECT_THAT(Step(), ElementsAre(3));
  EXPECT_THAT(Step(), ElementsAre(500));
}

TEST_F(PoolingSchedulerTest, AShortTextWaitsForOneOfAThousandLongOnes) {
  Add(std::vector<size_t>(1000, 100));
  Step();
  EXPECT_THAT(StepsUntil(Add({5})), Lt(3));
}

TEST_F(PoolingSchedulerTest, ALongTextIsNotOvertakenForever) {
  const StreamId long_text = Add({400});
  int overtaken = 0;
  while (std::find(ended_.begin(), ended_.end(), long_text) == ended_.end()) {
    Add({50});
    Add({50});
    Step();
    ++overtaken;
  }
  EXPECT_THAT(overtaken, Lt(12));
}

TEST_F(PoolingSchedulerTest, ALongTextInPiecesLetsOthersBetween) {
  Options(100, true);
  const StreamId long_text = Add({1000});
  Step();
  const StreamId short_text = Add({30});
  EXPECT_THAT(StepsUntil(short_text), Lt(4));
  EXPECT_THAT(StepsUntil(long_text), Lt(12));
}

TEST_F(PoolingSchedulerTest, OnlyOneTextIsInPiecesAtATime) {
  Options(100, true);
  const StreamId first = Add({250}), second = Add({260});
  Step();
  const int steps = StepsUntil(first);
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(StepsUntil(second), 3);
}

TEST_F(PoolingSchedulerTest, ATextTakenOutInPiecesMakesRoomForTheNext) {
  Options(100, true);
  const StreamId first = Add({250}), second = Add({260});
  Step();
  EXPECT_NE(scheduler_->Finish(first), nullptr);
  EXPECT_EQ(scheduler_->Finish(first), nullptr);
  EXPECT_EQ(StepsUntil(second), 3);
}

TEST_F(PoolingSchedulerTest, BatchesSideBySideAreOfLikeSize) {
  Options(100, false, 2);
  Add(std::vector<size_t>(4, 30));
  Add({35});
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(30, 30, 30), ElementsAre(35, 30)));
  Add(std::vector<size_t>(30, 30));
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(30, 30, 30), ElementsAre(30, 30, 30)));
}

TEST_F(PoolingSchedulerTest, WhatDoesNotPayTwoBatchesIsOne) {
  Options(100, false, 4);
  Add({20, 30, 50});
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(20, 30, 50)));
  Add({40, 50, 60});
  EXPECT_EQ(Batches().size(), 2u);
}

TEST_F(PoolingSchedulerTest, BesideALongTextTheOthersMayBeAsLarge) {
  Options(100, false, 2);
  Add({400});
  Add({350});
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(350)));
  Add(std::vector<size_t>(8, 60));
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(400), ElementsAre(60, 60, 60, 60, 60)));
}

TEST_F(PoolingSchedulerTest, AnUnevenStepIsItsFirstBatchAlone) {
  Options(100, false, 2);
  Add({30});
  Add({200});
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(30)));
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(200)));
}

TEST_F(PoolingSchedulerTest, ATextTooLongForTheOtherBatchesIsInTheFirst) {
  Options(100, false, 2);
  Add({250});
  Add({400});
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(250)));
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(400)));
}

// Tokens that have left are counted no more: a lone text would else find several batches.
TEST_F(PoolingSchedulerTest, TextsThatHaveGoneLeaveNoBatches) {
  Options(100, false, 2);
  const StreamId first = Add({90, 90, 90});
  for (StreamId stream = first; stream < first + 3; ++stream) scheduler_->Finish(stream);
  Add({40, 50});
  EXPECT_THAT(Batches(), ElementsAre(ElementsAre(40, 50)));
}

}  // namespace
}  // namespace portico::llama
