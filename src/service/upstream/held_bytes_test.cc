#include "service/upstream/held_bytes.h"

#include <gtest/gtest.h>

namespace portico {
namespace {

TEST(HeldBytesTest, WhatIsHeldCountsUntilTheLastLetsGo) {
  std::atomic<size_t> all{0};
  HeldBytes first(all, 10);
  EXPECT_TRUE(first.Append("abcd"));
  EXPECT_TRUE(first.Append("ef"));
  {
    HeldBytes second(all, 10);
    EXPECT_TRUE(second.Append("ghij"));
    EXPECT_FALSE(second.Append("k"));
    EXPECT_FALSE(first.Append("k"));
    EXPECT_EQ(second.size(), 4u);
    EXPECT_EQ(all, 10u);
  }
  EXPECT_EQ(all, 6u);
  auto taken = first.Take();
  const auto other = taken;
  EXPECT_EQ(*other, "abcdef");
  taken.reset();
  EXPECT_EQ(all, 6u);
}

TEST(HeldBytesTest, NothingIsLeftBehind) {
  std::atomic<size_t> all{0};
  auto taken = [&all] {
    HeldBytes bytes(all, 10);
    bytes.Append("abc");
    return bytes.Take();
  }();
  EXPECT_EQ(all, 3u);
  taken.reset();
  EXPECT_EQ(all, 0u);
}

TEST(HeldBytesTest, WhatIsReservedCountsBeforeItComes) {
  std::atomic<size_t> all{0};
  {
    HeldBytes bytes(all, 10);
    EXPECT_TRUE(bytes.Reserve(8));
    EXPECT_EQ(all, 8u);
    EXPECT_TRUE(bytes.Append("abcd"));
    EXPECT_EQ(all, 8u);
    EXPECT_EQ(bytes.size(), 4u);
    HeldBytes other(all, 10);
    EXPECT_FALSE(other.Reserve(3));
    EXPECT_TRUE(bytes.Append("efghij"));
    EXPECT_EQ(all, 10u);
  }
  EXPECT_EQ(all, 0u);
}

}  // namespace
}  // namespace portico
