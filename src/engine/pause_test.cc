// What engine.h promises of pauses, for every engine that can pause.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/llama/reference_engine_for_test.h"
#include "engine/mock/mock_engine.h"

namespace portico {
namespace {

using llama::Answer;
using llama::CollectingSink;
using llama::Greedy;

class PauseTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "mock") {
      MockEngineOptions options;
      options.vocab_size = 1000;
      options.context_length = 10000;
      options.itl_ms = 1;
      engine_ = NewMockEngine(options);
    } else {
      if (!llama::ReferenceEngine::Here()) GTEST_SKIP() << "the reference data is not here";
      llama::ReferenceEngine made;
      made.Load("llama-gqa");
      made.Start({});
      engine_ = std::move(made.engine_);
    }
  }

  void TearDown() override { sink_.Release(); }

  // `hold_at`: as CollectingSink::HoldAt() has it.
  StreamId Submit(int32_t tokens, size_t hold_at = 0) {
    GenerateRequest request = Greedy({5, 6, 7, 8, 9}, tokens);
    const StreamId stream = request.stream;
    if (hold_at > 0) sink_.HoldAt(stream, hold_at);
    EXPECT_TRUE(engine_->Submit(std::move(request), &sink_).ok());
    return stream;
  }

  // Pauses while the stream stands at the tokens at which it is held.
  void PauseAt(StreamId stream, size_t tokens, PauseMode mode) {
    sink_.WaitForTokens(stream, tokens);
    ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{mode}).ok());
    sink_.Release();
  }

  // Returns when the engine's thread has done what was asked before, and a step more if it takes
  // steps: streams end by abort also during a pause.
  void PassATurn() {
    for (int i = 0; i < 2; ++i) {
      CollectingSink sink;
      GenerateRequest request = Greedy({5, 6, 7}, 1000);
      const StreamId stream = request.stream;
      ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
      engine_->Abort(stream, kNoShard);
      sink.WaitForEnds(1);
    }
  }

  std::vector<TokenId> Undisturbed(int32_t tokens) {
    const StreamId stream = Submit(tokens);
    sink_.WaitForEnds(1);
    return sink_.of(stream).tokens;
  }

  std::unique_ptr<Engine> engine_;
  CollectingSink sink_;
};

TEST_P(PauseTest, InPlaceStreamsStandStillWithTheirCellsAndGoOnWithTheSameTokens) {
  const std::vector<TokenId> expected = Undisturbed(200);
  const StreamId stream = Submit(200, 3);
  PauseAt(stream, 3, PauseMode::kInPlace);
  EXPECT_TRUE(engine_->load().paused);
  PassATurn();
  const size_t held = sink_.of(stream).tokens.size();
  PassATurn();
  EXPECT_EQ(sink_.of(stream).tokens.size(), held);
  EXPECT_GT(engine_->load().kv_cells_used, 0);
  EXPECT_EQ(engine_->load().running, 1);
  EXPECT_TRUE(engine_->load().healthy);
  EXPECT_EQ(ControlAndWait(*engine_, FlushCacheControl{}).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
  EXPECT_FALSE(engine_->load().paused);
  sink_.WaitForEnds(2);
  EXPECT_EQ(sink_.of(stream).tokens, expected);
  EXPECT_EQ(sink_.of(stream).last.finish, FinishReason::kLength);
}

TEST_P(PauseTest, RetractedStreamsHoldNoCellsAndGoOnWithTheSameTokens) {
  const std::vector<TokenId> expected = Undisturbed(200);
  ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kInPlace}).ok());
  const StreamId first = Submit(200);
  const StreamId second = Submit(200, 3);
  ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());  // both together
  PauseAt(second, 3, PauseMode::kRetract);
  PassATurn();
  const EngineLoad load = engine_->load();
  EXPECT_EQ(load.kv_cells_used, 0);
  EXPECT_EQ(load.running, 0);
  EXPECT_EQ(load.waiting, 2);
  EXPECT_EQ(load.retractions, 2u);
  EXPECT_EQ(engine_->load().retracted, 2);
  EXPECT_TRUE(ControlAndWait(*engine_, FlushCacheControl{}).ok());
  PassATurn();
  EXPECT_EQ(engine_->load().kv_cells_cached, 0);
  ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
  sink_.WaitForEnds(3);
  EXPECT_EQ(sink_.of(first).tokens, expected);
  EXPECT_EQ(sink_.of(second).tokens, expected);
}

TEST_P(PauseTest, ModeAbortEndsEveryStreamAndNewOnesWait) {
  const StreamId running = Submit(200, 3);
  PauseAt(running, 3, PauseMode::kAbort);
  sink_.WaitForEnds(1);
  EXPECT_EQ(sink_.of(running).last.finish, FinishReason::kAbort);
  EXPECT_GE(sink_.of(running).last.usage.completion_tokens, 3);
  const StreamId waiting = Submit(4);
  PassATurn();
  EXPECT_EQ(sink_.of(waiting).tokens.size(), 0u);
  EXPECT_EQ(engine_->load().waiting, 1);
  ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
  sink_.WaitForEnds(2);
  EXPECT_EQ(sink_.of(waiting).tokens.size(), 4u);
  EXPECT_EQ(sink_.of(waiting).last.finish, FinishReason::kLength);
}

TEST_P(PauseTest, ModeAbortSparesWhatComesRightBehindIt) {
  // The mock engine took the pause and what had come after it in one go, and aborted both.
  const StreamId running = Submit(200, 3);
  sink_.WaitForTokens(running, 3);
  ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kAbort}).ok());
  const StreamId waiting = Submit(4);
  ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
  sink_.Release();
  sink_.WaitForEnds(2);
  EXPECT_EQ(sink_.of(running).last.finish, FinishReason::kAbort);
  EXPECT_EQ(sink_.of(waiting).tokens.size(), 4u);
  EXPECT_EQ(sink_.of(waiting).last.finish, FinishReason::kLength);
}

TEST_P(PauseTest, AbortedStreamsEndAtOnceInEveryMode) {
  for (const PauseMode mode : {PauseMode::kInPlace, PauseMode::kRetract}) {
    CollectingSink sink;
    GenerateRequest request = Greedy({5, 6, 7, 8, 9}, 400);
    const StreamId stream = request.stream;
    sink.HoldAt(stream, 2);
    ASSERT_TRUE(engine_->Submit(std::move(request), &sink).ok());
    sink.WaitForTokens(stream, 2);
    ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{mode}).ok());
    sink.Release();
    engine_->Abort(stream, kNoShard);
    sink.WaitForEnds(1);
    EXPECT_EQ(sink.of(stream).last.finish, FinishReason::kAbort);
    const EngineLoad load = engine_->load();
    EXPECT_EQ(load.running + load.waiting, 0);
    EXPECT_EQ(load.kv_cells_used, 0);
    ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
  }
}

TEST_P(PauseTest, APauseDuringAPauseDoesWhatItsModeSays) {
  const StreamId stream = Submit(400, 2);
  PauseAt(stream, 2, PauseMode::kInPlace);
  ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kRetract}).ok());
  PassATurn();
  EXPECT_EQ(engine_->load().kv_cells_used, 0);
  ASSERT_TRUE(ControlAndWait(*engine_, PauseControl{PauseMode::kAbort}).ok());
  sink_.WaitForEnds(1);
  EXPECT_EQ(sink_.of(stream).last.finish, FinishReason::kAbort);
  EXPECT_TRUE(engine_->load().paused);
}

TEST_P(PauseTest, ContinueWithoutAPauseChangesNothing) {
  ASSERT_TRUE(ControlAndWait(*engine_, ContinueControl{}).ok());
  EXPECT_EQ(Undisturbed(5).size(), 5u);
}

TEST_P(PauseTest, StoppingEndsPausedStreams) {
  const StreamId stream = Submit(400, 1);
  PauseAt(stream, 1, PauseMode::kInPlace);
  engine_->Stop();
  EXPECT_EQ(sink_.of(stream).last.finish, FinishReason::kAbort);
  EXPECT_EQ(ControlAndWait(*engine_, PauseControl{PauseMode::kInPlace}).code(),
            StatusCode::kUnavailable);
  EXPECT_EQ(ControlAndWait(*engine_, ContinueControl{}).code(), StatusCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Engines, PauseTest, testing::Values("llama", "mock"),
                         [](const auto& param) { return param.param; });

}  // namespace
}  // namespace portico
