#include "router/place_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/loop/run_on_shard_for_test.h"
#include "router/policy/fleet_for_test.h"

namespace portico::router {
namespace {

// Requests of one shard that is never started: they are let go when its tasks run.
class PlaceQueueTest : public testing::Test {
 protected:
  struct Waiter {
    uint64_t turn = 0;
    PlaceQueue::TicketPtr ticket;
  };

  PlaceQueueTest() {
    first_.workers = {&fleet_[0], &fleet_[1]};
    second_.workers = {&fleet_[2]};
  }
  // False if the queue is full.
  bool Wait(const std::string& name, const WorkerGroup& group,
            Priority priority = Priority::kDefault) {
    Waiter& waiter = waiters_[name];
    waiter.ticket = queue_.Wait(shard_, priority, set_, group, &waiter.turn,
                                [this, name] { let_go_.push_back(name); });
    return waiter.ticket != nullptr;
  }
  void RunTasks() {
    shard_.Start();
    net::RunOnShard(shard_, [] {});
  }

  TestFleet fleet_{3};
  WorkerSetPtr set_ = std::make_shared<const WorkerSet>();
  WorkerGroup first_;   // of workers 0 and 1
  WorkerGroup second_;  // of worker 2
  net::Shard shard_{0};
  PlaceQueue queue_{4};
  std::map<std::string, Waiter> waiters_;
  std::vector<std::string> let_go_;
};

TEST_F(PlaceQueueTest, AFreeWorkerLetsTheFirstOfItsGroupGoByPriority) {
  EXPECT_TRUE(Wait("other group", second_, Priority::kSystem));
  EXPECT_TRUE(Wait("bulk", first_, Priority::kBulk));
  EXPECT_TRUE(Wait("default 1", first_));
  EXPECT_TRUE(Wait("default 2", first_));
  for (int i = 0; i < 3; ++i) queue_.NoteFree(fleet_[1]);
  RunTasks();
  EXPECT_EQ(let_go_, (std::vector<std::string>{"default 1", "default 2", "bulk"}));
  EXPECT_EQ(queue_.waiting(), 1);
}

TEST_F(PlaceQueueTest, WhoFindsNoPlaceKeepsItsTurnAndIsNotRefused) {
  for (const char* name : {"a", "b", "c", "d"}) EXPECT_TRUE(Wait(name, first_));
  EXPECT_FALSE(Wait("one too many", first_));
  queue_.NoteFree(fleet_[0]);
  EXPECT_TRUE(Wait("e", first_));
  EXPECT_TRUE(Wait("a", first_)) << "it has been let in";
  for (int i = 0; i < 2; ++i) queue_.NoteFree(fleet_[0]);
  RunTasks();
  EXPECT_EQ(let_go_, (std::vector<std::string>{"a", "a", "b"}));
}

TEST_F(PlaceQueueTest, WhoLeavesIsNotCalledAndTheNextMovesUp) {
  EXPECT_TRUE(Wait("a", first_));
  EXPECT_TRUE(Wait("b", first_));
  EXPECT_TRUE(Wait("c", first_));
  queue_.GiveUp(waiters_["a"].ticket);
  queue_.NoteFree(fleet_[0]);
  queue_.GiveUp(waiters_["b"].ticket);  // let go, but not called yet
  queue_.NoteFree(fleet_[0]);
  RunTasks();
  EXPECT_EQ(let_go_, (std::vector<std::string>{"c"}));
  EXPECT_EQ(queue_.waiting(), 0);
}

TEST_F(PlaceQueueTest, WhatChangesWithoutARequestsEndIsSeenByATick) {
  EXPECT_TRUE(Wait("a", first_));
  EXPECT_TRUE(Wait("b", second_));
  queue_.Tick([&](const WorkerSet&, const WorkerGroup& group) { return &group == &second_; });
  RunTasks();
  EXPECT_EQ(let_go_, (std::vector<std::string>{"b"}));
}

}  // namespace
}  // namespace portico::router
