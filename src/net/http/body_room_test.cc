#include "net/http/body_room.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace portico::net {
namespace {

// A body of 30 MB was moved nine times while it came, the last time with 16 MiB, and all streams of the shard waited.
TEST(BodyRoom, ALongBodyIsNotMovedAgainAndCountsForWhatHasComeOfIt) {
  constexpr size_t kWhole = 30'000'000;
  const auto budget = std::make_shared<BodyBudget>(size_t{64} << 20);
  BodyLease lease;
  std::string body;
  size_t moved = 0;
  const std::string piece(50'000, 'a');
  for (size_t left = kWhole; left > 0; left -= piece.size()) {
    const char* const before = body.data();
    const size_t held = body.size();
    ASSERT_TRUE(MakeBodyRoom(&body, piece.size(), kWhole, budget, &lease));
    if (body.data() != before) moved = std::max(moved, held);
    EXPECT_GE(body.capacity(), body.size() + piece.size() + kBodyPadding);
    body += piece;
    EXPECT_LE(budget->taken(),
              std::max(2 * body.size() + 2 * kBodyPadding, BodyBudget::kSmallBody));
    EXPECT_GE(budget->taken() + BodyBudget::kSmallBody, body.size());
  }
  EXPECT_LE(moved, kMostMoved);
  EXPECT_EQ(budget->taken(), kWhole + kBodyPadding);
}

TEST(BodyRoom, ABodyThatTheBudgetCannotHoldIsRefusedWhereItOutgrowsIt) {
  const auto budget = std::make_shared<BodyBudget>(size_t{1} << 20);
  BodyLease lease;
  std::string body(600'000, 'a');
  EXPECT_TRUE(MakeBodyRoom(&body, 400'000, 2'000'000, budget, &lease));
  body.append(400'000, 'a');
  EXPECT_FALSE(MakeBodyRoom(&body, 400'000, 2'000'000, budget, &lease));
  lease.Release();
  EXPECT_EQ(budget->taken(), 0u);
}

}  // namespace
}  // namespace portico::net
