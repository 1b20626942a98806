#include "router/admission_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/loop/run_on_shard_for_test.h"

namespace portico::router {
namespace {

using Result = AdmissionQueue::Result;

// Requests of one shard that is never started: places are given when its tasks run.
class AdmissionQueueTest : public testing::Test {
 protected:
  Result Enter(AdmissionQueue& queue, const std::string& name, Priority priority) {
    tickets_.emplace_back();
    return queue.Enter(
        shard_, priority, [this, name] { let_in_.push_back(name); }, &tickets_.back());
  }
  void RunTasks() {
    shard_.Start();
    net::RunOnShard(shard_, [] {});
  }

  net::Shard shard_{0};
  std::vector<std::string> let_in_;
  std::vector<std::shared_ptr<AdmissionQueue::Ticket>> tickets_;
};

TEST_F(AdmissionQueueTest, PlacesGoByPriorityThenFirstComeFirstServed) {
  AdmissionQueue queue({.requests = 1, .queue = 4});
  EXPECT_EQ(Enter(queue, "first", Priority::kBulk), Result::kPlace);
  EXPECT_EQ(Enter(queue, "bulk", Priority::kBulk), Result::kWaits);
  EXPECT_EQ(Enter(queue, "default 1", Priority::kDefault), Result::kWaits);
  EXPECT_EQ(Enter(queue, "default 2", Priority::kDefault), Result::kWaits);
  EXPECT_EQ(Enter(queue, "interactive", PriorityOf("interactive")), Result::kWaits);
  EXPECT_EQ(Enter(queue, "one too many", Priority::kSystem), Result::kFull);
  for (int i = 0; i < 5; ++i) queue.Leave();
  RunTasks();
  EXPECT_EQ(let_in_, (std::vector<std::string>{"interactive", "default 1", "default 2", "bulk"}));
  EXPECT_EQ(queue.inside(), 0);
  EXPECT_EQ(queue.waiting(), 0);
}

TEST_F(AdmissionQueueTest, ARateLetsItsBurstInAndHoldsTheRestBack) {
  AdmissionQueue queue({.queue = 10, .per_second = 2});
  EXPECT_EQ(Enter(queue, "a", Priority::kDefault), Result::kPlace);
  EXPECT_EQ(Enter(queue, "b", Priority::kDefault), Result::kPlace);
  EXPECT_EQ(Enter(queue, "c", Priority::kDefault), Result::kWaits);
  queue.Leave();
  queue.Leave();
  EXPECT_EQ(queue.waiting(), 1) << "places that are free are not enough";
}

TEST_F(AdmissionQueueTest, ALimitThatIsRaisedLetsThoseInThatWait) {
  AdmissionQueue queue({.requests = 1, .queue = 10});
  EXPECT_EQ(Enter(queue, "a", Priority::kDefault), Result::kPlace);
  EXPECT_EQ(Enter(queue, "b", Priority::kDefault), Result::kWaits);
  EXPECT_EQ(Enter(queue, "c", Priority::kDefault), Result::kWaits);
  EXPECT_TRUE(queue.GiveUp(tickets_.back()));
  EXPECT_FALSE(queue.Configure({.requests = 1, .queue = 10}));
  EXPECT_TRUE(queue.Configure({.requests = -1, .queue = 10}));
  RunTasks();
  EXPECT_EQ(let_in_, std::vector<std::string>{"b"});
  EXPECT_EQ(Enter(queue, "d", Priority::kDefault), Result::kPlace);
}

TEST(AdmissionQueueShardsTest, EveryRequestGetsItsPlaceOrGivesUpWhileLimitsChange) {
  constexpr size_t kShards = 3;
  constexpr size_t kRequests = 200;  // of each
  AdmissionQueue queue({.requests = 2, .queue = 1000});
  std::atomic<size_t> ended{0};
  std::vector<std::shared_ptr<AdmissionQueue::Ticket>> tickets(kShards * kRequests);
  std::vector<std::unique_ptr<net::Shard>> shards;
  for (size_t i = 0; i < kShards; ++i) {
    shards.push_back(std::make_unique<net::Shard>(static_cast<int>(i)));
    shards.back()->Start();
  }
  const auto leave = [&] {
    queue.Leave();
    ++ended;
  };
  for (size_t n = 0; n < tickets.size(); ++n) {
    net::Shard& shard = *shards[n % kShards];
    shard.Post([&, n] {
      const auto result =
          queue.Enter(shard, static_cast<Priority>(n / kShards % 4), leave, &tickets[n]);
      if (result == Result::kPlace) shard.Post(leave);
      if (result == Result::kFull) ++ended;
      if (result == Result::kWaits && n % 5 == 0) {
        queue.GiveUp(tickets[n]) ? static_cast<void>(++ended) : leave();
      }
    });
  }
  const AdmissionLimits limits[] = {
      {.requests = 1, .queue = 1000}, {.requests = -1}, {.requests = 3, .queue = 10}};
  for (size_t turn = 0; ended < tickets.size(); ++turn) {
    queue.Configure(limits[turn % std::size(limits)]);
    queue.Tick();
    std::this_thread::yield();
  }
  EXPECT_EQ(queue.inside(), 0);
  EXPECT_EQ(queue.waiting(), 0);
  for (const auto& shard : shards) shard->Stop();
}

}  // namespace
}  // namespace portico::router
