#include "engine/llama/pooling/pooling_scheduler.h"

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

  // A batch that begins, one of so many.
  Batch Begin(size_t batches = 1, int32_t most_tokens = 1000) {
    return scheduler_->Next(batches, most_tokens);
  }

  static std::vector<int32_t> Sizes(const Batch& batch) {
    std::vector<int32_t> sizes;
    for (const Piece& piece : batch.pieces) sizes.push_back(piece.count);
    return sizes;
  }

  void End(const Batch& batch) {
    scheduler_->Computed(batch);
    for (const Piece& piece : batch.pieces) {
      if (piece.text->left() > 0) continue;
      ended_.push_back(piece.text->request.stream);
      scheduler_->Finish(ended_.back());
    }
  }

  // Computes a batch alone: the sizes of its pieces.
  std::vector<int32_t> Step() {
    const Batch batch = Begin();
    const std::vector<int32_t> sizes = Sizes(batch);
    End(batch);
    return sizes;
  }

  // The sizes of batches that begin together, of at most `room`. They end later, all together.
  std::vector<std::vector<int32_t>> Together(size_t room) {
    std::vector<Batch> batches;
    while (const size_t count = scheduler_->Batches(room - batches.size())) {
      batches.push_back(Begin(count));
    }
    std::vector<std::vector<int32_t>> sizes;
    for (const Batch& batch : batches) {
      sizes.push_back(Sizes(batch));
      End(batch);
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

  void TakePieces() {
    scheduler_ =
        std::make_unique<PoolingScheduler>(PoolingSchedulerOptions{100, 8, /*pieces=*/true, 60});
  }

  std::unique_ptr<PoolingScheduler> scheduler_ =
      std::make_unique<PoolingScheduler>(PoolingSchedulerOptions{100, 8, /*pieces=*/false, 60});
  StreamId next_ = 1;
  std::vector<StreamId> ended_;
};

TEST_F(PoolingSchedulerTest, SaysWhetherWhatWaitsFillsBatches) {
  Add({90, 60});
  EXPECT_TRUE(scheduler_->Fills(1));
  EXPECT_FALSE(scheduler_->Fills(2));
  Add({50});
  EXPECT_TRUE(scheduler_->Fills(2));
  Begin();
  EXPECT_FALSE(scheduler_->Fills(2));
}

TEST_F(PoolingSchedulerTest, FillsABatchWithTheShortestTextsFirst) {
  Add({60, 10, 90, 20});
  EXPECT_THAT(Step(), ElementsAre(10, 20, 60));
  EXPECT_THAT(Step(), ElementsAre(90));
  EXPECT_EQ(scheduler_->Any(), nullptr);
}

TEST_F(PoolingSchedulerTest, ABatchTakesNoMoreTextsThanItMay) {
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
  TakePieces();
  const StreamId long_text = Add({1000});
  Step();
  const StreamId short_text = Add({30});
  EXPECT_THAT(StepsUntil(short_text), Lt(4));
  EXPECT_THAT(StepsUntil(long_text), Lt(12));
}

TEST_F(PoolingSchedulerTest, OnlyOneTextIsInPiecesAtATime) {
  TakePieces();
  const StreamId first = Add({250}), second = Add({260});
  Step();
  const int steps = StepsUntil(first);
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(StepsUntil(second), 3);
}

TEST_F(PoolingSchedulerTest, ATextTakenOutInPiecesMakesRoomForTheNext) {
  TakePieces();
  const StreamId first = Add({250}), second = Add({260});
  Step();
  EXPECT_NE(scheduler_->Finish(first), nullptr);
  EXPECT_EQ(scheduler_->Finish(first), nullptr);
  EXPECT_EQ(StepsUntil(second), 3);
}

TEST_F(PoolingSchedulerTest, WhatWaitsIsDividedAmongTheBatchesThatBegin) {
  Add(std::vector<size_t>(5, 30));
  EXPECT_THAT(Together(2), ElementsAre(ElementsAre(30, 30), ElementsAre(30, 30, 30)));
  Add(std::vector<size_t>(30, 30));
  EXPECT_THAT(Together(2), ElementsAre(ElementsAre(30, 30, 30), ElementsAre(30, 30, 30)));
}

TEST_F(PoolingSchedulerTest, WhatDoesNotPayTwoBatchesIsOne) {
  Add({20, 30, 40});
  EXPECT_THAT(Together(4), ElementsAre(ElementsAre(20, 30, 40)));
  Add({30, 40, 50});
  EXPECT_THAT(Together(4), ElementsAre(ElementsAre(30), ElementsAre(40, 50)));
  EXPECT_EQ(scheduler_->Batches(0), 0u);
}

TEST_F(PoolingSchedulerTest, ALoneTextIsOneBatchHoweverLong) {
  Add({500});
  EXPECT_EQ(scheduler_->Batches(4), 1u);
}

TEST_F(PoolingSchedulerTest, WhatIsInABatchWaitsNoMore) {
  const StreamId first = Add({90, 90});
  const Batch batch = Begin();
  EXPECT_NE(scheduler_->InBatch(first), nullptr);
  EXPECT_EQ(scheduler_->InBatch(first + 1), nullptr);
  EXPECT_EQ(scheduler_->Batches(4), 1u);
  EXPECT_THAT(Sizes(Begin()), ElementsAre(90));
  EXPECT_EQ(scheduler_->Batches(4), 0u);
  End(batch);
  EXPECT_EQ(scheduler_->InBatch(first), nullptr);
}

TEST_F(PoolingSchedulerTest, ABatchMayBeTooSmallForLongTexts) {
  Add({250});
  Add({300});
  Add({20});
  EXPECT_THAT(Sizes(Begin(1, 200)), ElementsAre(20));
  EXPECT_THAT(Sizes(Begin(1, 200)), ElementsAre());
  EXPECT_THAT(Sizes(Begin(1, 250)), ElementsAre(250));
  EXPECT_THAT(Sizes(Begin(1, 300)), ElementsAre(300));
}

// Tokens that have left are counted no more: a lone text would else find several batches.
TEST_F(PoolingSchedulerTest, TextsThatHaveGoneLeaveNoBatches) {
  const StreamId first = Add({90, 90, 90});
  const Batch batch = Begin();
  for (StreamId stream = first; stream < first + 3; ++stream) {
    EXPECT_NE(scheduler_->Finish(stream), nullptr);
  }
  Add({40, 50});
  EXPECT_THAT(Together(2), ElementsAre(ElementsAre(40, 50)));
}

}  // namespace
}  // namespace portico::llama
