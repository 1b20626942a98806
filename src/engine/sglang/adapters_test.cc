#include "engine/sglang/adapters.h"

#include <gtest/gtest.h>

namespace portico::sglang {
namespace {

TEST(Adapters, OneIsTakenByNameOrById) {
  Adapters adapters;
  adapters.Add("a", "id-a", "/a");
  adapters.Add("b", "id-b", "/b");
  EXPECT_EQ(adapters.Take("a", "")->id, "id-a");
  EXPECT_EQ(adapters.Take("", "id-b")->name, "b");
  EXPECT_EQ(FieldOf(adapters.Take("c", "").status()), "lora_path");
  EXPECT_EQ(FieldOf(adapters.Take("", "id-c").status()), "lora_id");
  EXPECT_EQ(adapters.List().size(), 2u);
}

TEST(Adapters, OneThatIsInUseIsNotUnloaded) {
  Adapters adapters;
  adapters.Add("a", "id-a", "/a");
  ASSERT_TRUE(adapters.Take("a", "").ok());
  ASSERT_TRUE(adapters.Take("", "id-a").ok());
  EXPECT_EQ(adapters.StartUnload("a").status().code(), StatusCode::kFailedPrecondition);
  adapters.GiveBack("a");
  EXPECT_EQ(adapters.StartUnload("a").status().code(), StatusCode::kFailedPrecondition);
  adapters.GiveBack("a");
  EXPECT_EQ(*adapters.StartUnload("a"), "id-a");
}

TEST(Adapters, NothingTakesOneThatIsBeingUnloaded) {
  Adapters adapters;
  adapters.Add("a", "id-a", "/a");
  ASSERT_TRUE(adapters.StartUnload("a").ok());
  EXPECT_FALSE(adapters.Take("a", "").ok());
  EXPECT_EQ(adapters.StartUnload("a").status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(adapters.List().empty());
  adapters.KeepAfterAll("a");
  EXPECT_TRUE(adapters.Take("a", "").ok());
  adapters.GiveBack("a");
  ASSERT_TRUE(adapters.StartUnload("a").ok());
  adapters.Remove("a");
  EXPECT_FALSE(adapters.Has("a"));
}

// The engine has died, and its streams end after that.
TEST(Adapters, AUseOutlivesItsAdapter) {
  Adapters adapters;
  adapters.Add("a", "id-a", "/a");
  ASSERT_TRUE(adapters.Take("a", "").ok());
  adapters.Clear();
  adapters.GiveBack("a");
  adapters.Add("a", "other", "/a");
  adapters.GiveBack("a");
  EXPECT_TRUE(adapters.StartUnload("a").ok());
}

}  // namespace
}  // namespace portico::sglang
