#include "engine/llama/kv/kv_size.h"

#include <gtest/gtest.h>

#include <limits>

namespace portico::llama {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

int64_t Cells(const KvSizeRequest& request) {
  const StatusOr<KvSize> size = ChooseKvSize(request);
  EXPECT_TRUE(size.ok());
  return size.ok() ? size->cells : -1;
}

TEST(KvSize, TakesWhatTheUserAsksFor) { EXPECT_EQ(Cells({1000, 2048, 32, 100, kGib}), 1000); }

TEST(KvSize, GivesEveryRunningRequestItsContextWhileThatIsLittle) {
  EXPECT_EQ(Cells({0, 256, 32, 100, kGib}), 256 * 32);
  EXPECT_EQ(Cells({0, 2048, 32, 100, kGib}), kMostDefaultCells);
}

TEST(KvSize, TakesAQuarterOfTheFreeMemoryAtMostButAtLeastOneContext) {
  EXPECT_EQ(Cells({0, 2048, 32, 1 << 17, kGib}), 2048);
  EXPECT_EQ(Cells({0, 512, 32, 1 << 17, kGib}), 2048);
  EXPECT_EQ(Cells({0, 40960, 32, 1000, kGib}), 40960);
}

TEST(KvSize, RefusesWhatTheMemoryCannotHoldNamingBothNumbers) {
  const StatusOr<KvSize> size = ChooseKvSize({0, 40960, 32, 1 << 17, kGib});
  ASSERT_FALSE(size.ok());
  EXPECT_EQ(size.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(MessageOf(size.status()).find("5.0 GiB"), std::string_view::npos);
  EXPECT_NE(MessageOf(size.status()).find("1.0 GiB"), std::string_view::npos);
}

// A server with one cell started, and refused every request.
TEST(KvSize, RefusesWhatIsTooSmallForAnyRequestNamingBothNumbers) {
  const StatusOr<KvSize> size = ChooseKvSize({1, 2048, 32, 100, kGib});
  ASSERT_FALSE(size.ok());
  EXPECT_EQ(size.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(MessageOf(size.status()).find("of 1 tokens"), std::string_view::npos);
  EXPECT_NE(MessageOf(size.status()).find("takes 2"), std::string_view::npos);
  EXPECT_EQ(Cells({2, 2048, 32, 100, kGib}), 2);
}

TEST(KvSize, KnowsTheFreeMemory) { EXPECT_GT(FreeMemoryBytes(), 0); }

TEST(KvSize, DoesNotTakeMappedWeightsForFreeMemory) {
  EXPECT_EQ(FreeMemoryBytes(std::numeric_limits<int64_t>::max()), 0);
}

TEST(KvSize, WritesBytesForPeople) {
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(640 << 20), "640 MiB");
  EXPECT_EQ(HumanBytes(7 * kGib / 2), "3.5 GiB");
}

}  // namespace
}  // namespace portico::llama
