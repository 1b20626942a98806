#include "pipeline/coordinator/own_tasks.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>
#include <utility>
#include <vector>

namespace portico::pipeline {
namespace {

constexpr TimePoint kNoHurry = TimePoint::max();

TEST(OwnTasks, AreDoneAtTheEndInOrderWithThoseThatTheyAdd) {
  CpuPool pool(1, 64);
  std::vector<int> done;
  {
    const OwnTasks own(kNoHurry);
    ASSERT_TRUE(OwnTasks::Keep(&pool, [&] {
      done.push_back(1);
      ASSERT_TRUE(OwnTasks::Keep(&pool, [&done] { done.push_back(3); }));
    }));
    ASSERT_TRUE(OwnTasks::Keep(&pool, [&done] { done.push_back(2); }));
    EXPECT_TRUE(done.empty());
  }
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(pool.taken(), 0U);
}

TEST(OwnTasks, AreOnlyKeptWhereTheThreadDoesSome) {
  CpuPool pool(1, 64);
  bool done = false;
  CpuPool::Task task = [&done] { done = true; };
  EXPECT_FALSE(OwnTasks::Keep(&pool, std::move(task)));
  {
    const OwnTasks own(kNoHurry);
    std::thread([&] { EXPECT_FALSE(OwnTasks::Keep(&pool, std::move(task))); }).join();
  }
  EXPECT_FALSE(OwnTasks::Keep(&pool, std::move(task)));
  EXPECT_FALSE(done);
  task();
  EXPECT_TRUE(done);
}

// A stage that two others feed never ran out of work: the thread of one of them, which answers pings, did nothing else.
TEST(OwnTasks, ThatAlwaysAddOneAreLeftToThePool) {
  const std::thread::id mine = std::this_thread::get_id();
  std::thread::id last;
  std::function<void()> again;
  {
    CpuPool pool(1, 64);
    again = [&] {
      last = std::this_thread::get_id();
      if (last == mine) OwnTasks::Keep(&pool, [&again] { again(); });
    };
    const OwnTasks own(Clock::now() + OwnTasks::kTurn);
    ASSERT_TRUE(OwnTasks::Keep(&pool, [&again] { again(); }));
  }
  EXPECT_NE(last, mine);
}

TEST(OwnTasks, AreDoneHereWhereThePoolIsFull) {
  int done = 0;
  CpuPool pool(1, 0);
  {
    const OwnTasks own(TimePoint{});
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(OwnTasks::Keep(&pool, [&done] { ++done; }));
  }
  EXPECT_EQ(done, 3);
  EXPECT_EQ(pool.refused(), 3U);
}

}  // namespace
}  // namespace portico::pipeline
