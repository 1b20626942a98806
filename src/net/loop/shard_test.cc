#include "net/loop/shard.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/metrics.h"
#include "net/loop/timer_queue.h"

namespace portico::net {
namespace {

void Settle(Shard& shard) {
  std::promise<void> done;
  shard.Post([&] { done.set_value(); });
  done.get_future().wait();
}

TEST(Shard, RunsPostedTasksInOrderOnItsThread) {
  Shard shard(3);
  EXPECT_EQ(shard.index(), 3);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    shard.Post([&, i] {
      EXPECT_TRUE(shard.OnShard());
      order.push_back(i);
    });
  }
  EXPECT_TRUE(order.empty());
  shard.Start();
  Settle(shard);
  EXPECT_FALSE(shard.OnShard());
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST(Shard, TakesTasksOfManyThreads) {
  Shard shard(0);
  shard.Start();
  int count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10000; ++i) shard.Post([&] { ++count; });
    });
  }
  for (auto& thread : threads) thread.join();
  Settle(shard);
  EXPECT_EQ(count, 40000);
}

TEST(Shard, RunsEndOfTurnTasksAfterTheTasksOfTheTurnAndThoseTheyAdd) {
  Shard shard(0);
  std::vector<int> order;
  shard.Post([&] {
    shard.AtEndOfTurn([&] {
      order.push_back(3);
      shard.AtEndOfTurn([&] { order.push_back(4); });
    });
    order.push_back(1);
  });
  shard.Post([&] { order.push_back(2); });
  shard.Start();
  Settle(shard);  // in the same turn, perhaps
  Settle(shard);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3, 4}));
}

TEST(Shard, RunsTimersInOrderOfTimeAndNotTheCancelled) {
  Shard shard(0);
  shard.Start();
  std::vector<int> order;
  std::promise<void> last;
  std::vector<std::unique_ptr<Shard::Timer>> timers;
  shard.Post([&] {
    auto after = [&](int ms, int name) {
      timers.push_back(
          shard.After(std::chrono::milliseconds(ms), [&order, name] { order.push_back(name); }));
    };
    after(30, 3);
    after(10, 1);
    after(20, 2);
    after(15, 9);
    timers.pop_back();
    timers.push_back(shard.After(std::chrono::milliseconds(40), [&] { last.set_value(); }));
  });
  last.get_future().wait();
  Settle(shard);
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  shard.Stop();
}

double ValueOf(const Registry& registry, const std::string& series) {
  std::string text;
  registry.Render(&text);
  const size_t at = text.find(series + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 1));
}

// The length of a turn alone does not tell whether it computed or waited for a processor.
TEST(Shard, MeasuresItsTurnsAndWhatTheLongOnesComputed) {
  Registry registry;
  Shard shard(5);
  shard.CountTurns(registry);
  shard.Start();
  const auto turn = [&shard](Shard::Task task) {
    shard.Post(std::move(task));
    Settle(shard);
    Settle(shard);
  };
  turn([] { std::this_thread::sleep_for(std::chrono::milliseconds(60)); });
  const std::string wall = "portico_shard_turn_seconds_",
                    cpu = "portico_shard_long_turn_cpu_seconds_";
  const std::string own = "{shard=\"5\"}";
  EXPECT_GE(ValueOf(registry, wall + "count" + own), 1);  // the task's; others may have shared it
  EXPECT_GE(ValueOf(registry, wall + "sum" + own), 0.06);
  EXPECT_GE(ValueOf(registry, cpu + "count" + own), 1);
  EXPECT_LT(ValueOf(registry, cpu + "sum" + own), 0.05);
  turn([] {
    timespec now = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    const int64_t end = now.tv_sec * 1'000'000'000 + now.tv_nsec + 60'000'000;
    while (now.tv_sec * 1'000'000'000 + now.tv_nsec < end) {
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    }
  });
  EXPECT_GE(ValueOf(registry, cpu + "sum" + own), 0.06);
  shard.Stop();
}

TEST(TimerQueue, KeepsItsOrderUnderRandomAddsAndCancels) {
  std::mt19937 random(7);
  TimerQueue queue;
  std::vector<std::unique_ptr<Shard::Timer>> timers;
  std::vector<int> ran;
  TimePoint zero;
  for (int i = 0; i < 5000; ++i) {
    int due = static_cast<int>(random() % 100000);
    timers.push_back(
        queue.Add(zero + std::chrono::microseconds(due), [&ran, due] { ran.push_back(due); }));
    if (random() % 3 == 0) {
      std::swap(timers[random() % timers.size()], timers.back());
      timers.pop_back();
    }
  }
  size_t left = timers.size();
  for (int now = 0; now <= 100000; now += 1000) {
    queue.RunDue(zero + std::chrono::microseconds(now));
    if (queue.empty()) break;
    EXPECT_GT(queue.earliest(), zero + std::chrono::microseconds(now));
  }
  EXPECT_EQ(ran.size(), left);
  EXPECT_TRUE(std::is_sorted(ran.begin(), ran.end()));
}

TEST(TimerQueue, LetsATaskCancelTheNextAndDestroyItself) {
  TimerQueue queue;
  TimePoint zero;
  std::unique_ptr<Shard::Timer> first;
  std::unique_ptr<Shard::Timer> second;
  int ran = 0;
  first = queue.Add(zero, [&] {
    ++ran;
    second.reset();
    first.reset();
  });
  second = queue.Add(zero, [&] { ++ran; });
  queue.RunDue(zero);
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(queue.empty());
}

TEST(TimerQueue, MayDieBeforeItsTimers) {
  auto queue = std::make_unique<TimerQueue>();
  auto timer = queue->Add(TimePoint(), [] {});
  queue.reset();
}

}  // namespace
}  // namespace portico::net
