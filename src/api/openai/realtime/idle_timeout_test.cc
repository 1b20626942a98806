#include "api/openai/realtime/idle_timeout.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <vector>

#include "net/loop/run_on_shard_for_test.h"

namespace portico::api::openai {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

// An idle timeout on a shard of its own. Each silence is answered at once, as sessions do it.
class IdleTimeoutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    shard_.Start();
    OnShard([this] {
      idle_.emplace(shard_, [this](int64_t begin_ms) {
        begins_.push_back(begin_ms);
        idle_->Answered(Duration::zero(), begin_ms + 1);
        if (!idle_->running()) stopped_.set_value();
      });
    });
  }
  void TearDown() override {
    OnShard([this] { idle_.reset(); });
    shard_.Stop();
  }
  void OnShard(const std::function<void()>& task) { net::RunOnShard(shard_, task); }

  net::Shard shard_{0};
  std::optional<IdleTimeout> idle_;
  std::vector<int64_t> begins_;
  std::promise<void> stopped_;
};

// An open microphone in an empty room was answered for ever.
TEST_F(IdleTimeoutTest, RunsSoOftenWithoutAWordOfTheUserAndNoMore) {
  OnShard([this] {
    idle_->Configure(milliseconds(1));
    idle_->Answered(Duration::zero(), 100);
  });
  stopped_.get_future().wait();
  OnShard([this] {
    ASSERT_EQ(begins_.size(), size_t{IdleTimeout::kMostInARow});
    EXPECT_EQ(begins_.front(), 100);
    EXPECT_EQ(begins_.back(), 99 + IdleTimeout::kMostInARow);
    idle_->UserSpeaks();
    idle_->Configure(hours(1));
    idle_->Answered(Duration::zero(), 0);
    EXPECT_TRUE(idle_->running());
  });
}

TEST_F(IdleTimeoutTest, StandsStillWhileSomethingBesideTheConversationIsMade) {
  OnShard([this] {
    idle_->Configure(hours(1));
    idle_->Answered(Duration::zero(), 0);
    EXPECT_TRUE(idle_->running());
    idle_->Hold();
    EXPECT_FALSE(idle_->running());
    idle_->Configure(hours(2));
    EXPECT_FALSE(idle_->running());
    idle_->Release();
    EXPECT_TRUE(idle_->running());
    idle_->Hold();
    idle_->UserSpeaks();
    idle_->Release();
    EXPECT_FALSE(idle_->running());
  });
}

}  // namespace
}  // namespace portico::api::openai
