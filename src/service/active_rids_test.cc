#include "service/active_rids.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace portico {
namespace {

TEST(ActiveRidsTest, ARidIsRefusedWhileItIsHeldAndFreeAfterwards) {
  ActiveRids rids;
  std::optional<RidLease> lease = *rids.Take("mine");
  const Status refused = rids.Take("mine").status();
  EXPECT_EQ(refused.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(FieldOf(refused), "rid");
  EXPECT_NE(MessageOf(refused).find("mine"), std::string_view::npos);
  EXPECT_TRUE(rids.Take("other").ok());
  lease.reset();
  EXPECT_TRUE(rids.Take("mine").ok());
}

TEST(ActiveRidsTest, ALeaseKeepsItsRidWhenItMoves) {
  ActiveRids rids;
  RidLease kept;
  {
    RidLease first = *rids.Take("mine");
    kept = std::move(first);
  }
  EXPECT_FALSE(rids.Take("mine").ok());
  RidLease other = *rids.Take("other");
  kept = std::move(other);  // gives "mine" back
  EXPECT_TRUE(rids.Take("mine").ok());
  EXPECT_FALSE(rids.Take("other").ok());
  kept.Release();
  kept.Release();
  EXPECT_TRUE(rids.Take("other").ok());
}

TEST(ActiveRidsTest, AnEmptyRidIsNobodys) {
  ActiveRids rids;
  const StatusOr<RidLease> first = rids.Take("");
  const StatusOr<RidLease> second = rids.Take("");
  EXPECT_TRUE(first.ok() && second.ok());
}

TEST(ActiveRidsTest, OfManyThreadsOneGetsTheRid) {
  ActiveRids rids;
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> got{0};
    std::atomic<int> tried{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        StatusOr<RidLease> lease = rids.Take("mine");
        if (lease.ok()) ++got;
        ++tried;
        while (tried < 4) std::this_thread::yield();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(got, 1);
  }
}

}  // namespace
}  // namespace portico
