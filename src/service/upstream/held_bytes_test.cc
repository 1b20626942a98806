#include "service/upstream/held_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

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

// Sixteen fetches from one host that announced 64 MiB and sent nothing kept all others out until they timed out.
TEST(HeldBytesTest, WhatIsAnnouncedCountsOnlyAsItComes) {
  std::atomic<size_t> all{0};
  {
    HeldBytes silent(all, 10);
    silent.Expect(8);
    EXPECT_EQ(all, 0u);
    EXPECT_TRUE(silent.Append("ab"));
    EXPECT_EQ(all, 2u);
    HeldBytes other(all, 10);
    other.Expect(8);
    EXPECT_TRUE(other.Append("cdefghij"));
    EXPECT_EQ(all, 10u);
    EXPECT_FALSE(silent.Append("k"));
    EXPECT_EQ(all, 10u);
    EXPECT_EQ(*silent.Take(), "ab");
  }
  EXPECT_EQ(all, 0u);
}

TEST(HeldBytesTest, AnAnnouncedFileGrowsInFewStepsThatEndAtItsSize) {
  constexpr size_t kSize = size_t{1} << 20;
  constexpr size_t kPiece = 1000;
  std::atomic<size_t> all{0};
  HeldBytes bytes(all, 2 * kSize);
  bytes.Expect(kSize);
  const std::string piece(kPiece, 'x');
  size_t steps = 0;
  size_t moved = 0;
  const char* data = nullptr;
  while (bytes.size() < kSize) {
    const size_t before = bytes.size();
    ASSERT_TRUE(bytes.Append(std::string_view(piece).substr(0, kSize - before)));
    if (std::exchange(data, bytes.view().data()) == bytes.view().data()) continue;
    ++steps;
    moved += before;
  }
  EXPECT_LE(steps, 5u);
  EXPECT_LT(moved, kSize / 4);
  EXPECT_EQ(all, kSize);
  const auto taken = bytes.Take();
  EXPECT_EQ(taken->size(), kSize);
  EXPECT_EQ(taken->capacity(), kSize);
}

TEST(HeldBytesTest, MoreThanWasAnnouncedIsTakenToo) {
  std::atomic<size_t> all{0};
  HeldBytes bytes(all, 100);
  bytes.Expect(2);
  std::string sent;
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(bytes.Append("ab"));
    sent += "ab";
  }
  EXPECT_EQ(all, 80u);
  EXPECT_EQ(*bytes.Take(), sent);
}

}  // namespace
}  // namespace portico
