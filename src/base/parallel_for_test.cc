#include "base/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace portico {
namespace {

TEST(ParallelForTest, EveryIndexIsVisitedOnce) {
  CpuPool pool(3, 16);
  for (size_t count : {0u, 1u, 2u, 1000u}) {
    std::vector<std::atomic<int>> seen(count);
    ParallelFor(&pool, count, [&](size_t i) { seen[i].fetch_add(1); });
    for (const std::atomic<int>& n : seen) EXPECT_EQ(n.load(), 1);
  }
}

TEST(ParallelForTest, WithoutAPoolTheCallerDoesAll) {
  size_t sum = 0;
  ParallelFor(nullptr, 100, [&](size_t i) { sum += i; });
  EXPECT_EQ(sum, 4950u);
}

TEST(ParallelForTest, APoolThatNeverGetsToItDoesNotBlockTheCaller) {
  CpuPool pool(1, 1);
  std::promise<void> release;
  ASSERT_TRUE(pool.Submit([done = release.get_future().share()] { done.wait(); }));
  std::atomic<size_t> visited{0};
  ParallelFor(&pool, 50, [&](size_t) { visited.fetch_add(1); });
  EXPECT_EQ(visited.load(), 50u);
  release.set_value();
}

TEST(ParallelForTest, LoopsInsideLoopsEnd) {
  CpuPool pool(2, 8);
  std::atomic<size_t> visited{0};
  ParallelFor(&pool, 8,
              [&](size_t) { ParallelFor(&pool, 8, [&](size_t) { visited.fetch_add(1); }); });
  EXPECT_EQ(visited.load(), 64u);
}

}  // namespace
}  // namespace portico
