#include "engine/sglang/released_memory.h"

#include <gtest/gtest.h>

namespace portico::sglang {
namespace {

TEST(ReleasedMemory, OnlyWhatIsReleasedIsGivenBackAndNothingTwice) {
  ReleasedMemory memory;
  EXPECT_FALSE(memory.Any());
  EXPECT_EQ(memory.Resume({"weights"}).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(memory.Release({"weights"}).ok());
  EXPECT_EQ(memory.Release({"kv_cache", "weights"}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(memory.Release({"kv_cache", "kv_cache"}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(memory.Resume({"weights", "kv_cache"}).code(), StatusCode::kFailedPrecondition);
  ASSERT_TRUE(memory.Release({"kv_cache"}).ok());
  ASSERT_TRUE(memory.Resume({"kv_cache", "weights"}).ok());
  EXPECT_FALSE(memory.Any());
}

TEST(ReleasedMemory, ACallThatNamesNothingMeansAllOfIt) {
  ReleasedMemory memory;
  ASSERT_TRUE(memory.Release(ReleasedMemory::AllIfEmpty({})).ok());
  ASSERT_TRUE(memory.Resume({"kv_cache"}).ok());
  EXPECT_EQ(FieldOf(memory.Resume(ReleasedMemory::AllIfEmpty({}))), "tags");
  EXPECT_TRUE(memory.Any());
  memory.Clear();
  EXPECT_FALSE(memory.Any());
}

}  // namespace
}  // namespace portico::sglang
