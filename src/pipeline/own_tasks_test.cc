#include "pipeline/own_tasks.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

namespace portico::pipeline {
namespace {

TEST(OwnTasks, AreDoneAtTheEndInOrderWithThoseThatTheyAdd) {
  std::vector<int> done;
  {
    const OwnTasks own;
    ASSERT_TRUE(OwnTasks::Keep([&done] {
      done.push_back(1);
      ASSERT_TRUE(OwnTasks::Keep([&done] { done.push_back(3); }));
    }));
    ASSERT_TRUE(OwnTasks::Keep([&done] { done.push_back(2); }));
    EXPECT_TRUE(done.empty());
  }
  EXPECT_EQ(done, (std::vector<int>{1, 2, 3}));
}

TEST(OwnTasks, AreOnlyKeptWhereTheThreadDoesSome) {
  bool done = false;
  CpuPool::Task task = [&done] { done = true; };
  EXPECT_FALSE(OwnTasks::Keep(std::move(task)));
  {
    const OwnTasks own;
    std::thread([&task] { EXPECT_FALSE(OwnTasks::Keep(std::move(task))); }).join();
  }
  EXPECT_FALSE(OwnTasks::Keep(std::move(task)));
  EXPECT_FALSE(done);
  task();
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace portico::pipeline
