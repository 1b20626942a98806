#include "base/gate.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace portico {
namespace {

TimePoint Past() { return Clock::now() - std::chrono::seconds(1); }
TimePoint FarAway() { return Clock::now() + std::chrono::hours(1); }

TEST(Gate, LetsWorkInUntilItIsClosed) {
  Gate gate;
  Gate::Pass first = gate.Enter();
  EXPECT_TRUE(first);
  EXPECT_EQ(gate.inside(), 1);
  gate.Close();
  gate.Close();
  EXPECT_TRUE(gate.closed());
  EXPECT_FALSE(gate.Enter());
  EXPECT_EQ(gate.inside(), 1);
}

TEST(Gate, CountsAMovedPassOnce) {
  Gate gate;
  {
    Gate::Pass first = gate.Enter();
    Gate::Pass second = std::move(first);
    EXPECT_EQ(gate.inside(), 1);
    second = gate.Enter();
  }
  EXPECT_EQ(gate.inside(), 0);
}

TEST(Gate, WaitsForThoseInside) {
  Gate gate;
  std::optional<Gate::Pass> pass = gate.Enter();
  gate.Close();
  EXPECT_FALSE(gate.Wait(Past()));
  std::thread worker([&] { pass.reset(); });
  EXPECT_TRUE(gate.Wait(FarAway()));
  worker.join();
}

TEST(Gate, DoesNotCountAsDoneWhileItIsOpen) {
  Gate gate;
  EXPECT_FALSE(gate.Wait(Past()));
  gate.Close();
  EXPECT_TRUE(gate.Wait(Past()));
}

TEST(Gate, MayBeDestroyedAsSoonAsTheLastOneHasLeft) {
  for (int round = 0; round < 200; ++round) {
    auto gate = std::make_unique<Gate>();
    std::vector<std::thread> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back([pass = gate->Enter()]() mutable { pass = Gate::Pass(); });
    }
    gate->Close();
    ASSERT_TRUE(gate->Wait(FarAway()));
    gate.reset();
    for (std::thread& worker : workers) worker.join();
  }
}

TEST(Gate, LetsNobodyInAfterWaitHasReturned) {
  Gate gate;
  std::atomic<bool> empty{false};
  std::atomic<int> late{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (Gate::Pass pass = gate.Enter()) {
        if (empty) ++late;
      }
    });
  }
  gate.Close();
  ASSERT_TRUE(gate.Wait(FarAway()));
  empty = true;
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(late, 0);
}

}  // namespace
}  // namespace portico
