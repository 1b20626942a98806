#include "base/cpu_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>

namespace portico {
namespace {

TEST(CpuPool, RunsEverythingBeforeItIsGone) {
  std::atomic<int> runs{0};
  {
    CpuPool pool(3, 1000);
    for (int i = 0; i < 1000; ++i) {
      CpuPool::Task task = [&] { ++runs; };
      while (!pool.Submit(std::move(task))) {
      }
    }
  }
  EXPECT_EQ(runs, 1000);
}

TEST(CpuPool, RefusesWhatTheQueueCannotHoldAndLeavesTheTaskWhole) {
  std::latch started(1);
  std::latch release(1);
  int ran = 0;
  {
    CpuPool pool(1, 1);
    ASSERT_TRUE(pool.Submit([&] {
      started.count_down();
      release.wait();
    }));
    started.wait();
    ASSERT_TRUE(pool.Submit([] {}));
    EXPECT_EQ(pool.queued(), 1u);
    CpuPool::Task third = [&] { ++ran; };
    EXPECT_FALSE(pool.Submit(std::move(third)));
    third();  // the caller's own way
    release.count_down();
  }
  EXPECT_EQ(ran, 1);
}

TEST(CpuPool, StartsTasksInTheOrderOfSubmission) {
  std::vector<int> order;
  {
    CpuPool pool(1, 100);
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(pool.Submit([&order, i] { order.push_back(i); }));
    }
  }
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST(CpuPool, TakesTasksThatCanOnlyBeMoved) {
  int seen = 0;
  {
    CpuPool pool(1, 1);
    auto value = std::make_unique<int>(7);
    ASSERT_TRUE(pool.Submit([&seen, value = std::move(value)] { seen = *value; }));
  }
  EXPECT_EQ(seen, 7);
}

}  // namespace
}  // namespace portico
