#include "engine/sglang/adapters.h"

#include <gtest/gtest.h>

namespace portico::sglang {
namespace {

Adapters::Adapter Named(const std::string& name, bool pinned = false) {
  return {name, "id-" + name, "/" + name, pinned};
}

class AdaptersTest : public testing::Test {
 protected:
  void Load(const std::string& name, bool pinned = false) {
    ASSERT_TRUE(adapters_.StartLoad(Named(name, pinned)).ok());
    adapters_.EndLoad("id-" + name, OkStatus(), true);
  }
  void Use(const std::string& name) {
    const auto use = adapters_.Take(name, "");
    ASSERT_TRUE(use.ok());
    adapters_.GiveBack(use->id);
  }
  std::string Evict() {
    const auto oldest = adapters_.StartEviction();
    if (!oldest) return "nothing";
    adapters_.EndUnload(oldest->id, true);
    return oldest->name;
  }

  Adapters adapters_;
};

TEST_F(AdaptersTest, OneIsTakenByNameOrById) {
  adapters_.Add(Named("a"));
  adapters_.Add(Named("b"));
  EXPECT_EQ(adapters_.Take("a", "")->id, "id-a");
  EXPECT_EQ(adapters_.Take("", "id-b")->name, "b");
  EXPECT_EQ(adapters_.Take("", "b")->name, "b");
  EXPECT_EQ(FieldOf(adapters_.Take("c", "").status()), "lora_path");
  EXPECT_EQ(FieldOf(adapters_.Take("", "id-c").status()), "lora_id");
  EXPECT_EQ(adapters_.List().size(), 2u);
}

TEST_F(AdaptersTest, OneThatIsInUseIsNotUnloaded) {
  adapters_.Add(Named("a"));
  ASSERT_TRUE(adapters_.Take("a", "").ok());
  ASSERT_TRUE(adapters_.Take("", "id-a").ok());
  EXPECT_EQ(adapters_.StartUnload("a").status().code(), StatusCode::kFailedPrecondition);
  adapters_.GiveBack("id-a");
  EXPECT_EQ(adapters_.StartUnload("a").status().code(), StatusCode::kFailedPrecondition);
  adapters_.GiveBack("id-a");
  EXPECT_EQ(*adapters_.StartUnload("a"), "id-a");
}

TEST_F(AdaptersTest, NothingTakesOneThatIsBeingUnloaded) {
  adapters_.Add(Named("a"));
  ASSERT_TRUE(adapters_.StartUnload("a").ok());
  EXPECT_FALSE(adapters_.Take("a", "").ok());
  EXPECT_EQ(adapters_.StartUnload("a").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(FieldOf(adapters_.StartLoad(Named("a"))), "lora_name");
  EXPECT_TRUE(adapters_.List().empty());
  adapters_.EndUnload("id-a", false);
  EXPECT_TRUE(adapters_.Take("a", "").ok());
  adapters_.GiveBack("id-a");
  ASSERT_TRUE(adapters_.StartUnload("a").ok());
  adapters_.EndUnload("id-a", true);
  EXPECT_FALSE(adapters_.Take("a", "").ok());
}

// The engine has died, and its streams end after that.
TEST_F(AdaptersTest, AUseOutlivesItsAdapter) {
  adapters_.Add(Named("a"));
  ASSERT_TRUE(adapters_.Take("a", "").ok());
  adapters_.Clear();
  adapters_.GiveBack("id-a");
  adapters_.Add({"a", "other", "/a"});
  ASSERT_TRUE(adapters_.Take("a", "").ok());
  adapters_.GiveBack("id-a");
  EXPECT_EQ(adapters_.StartUnload("a").status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(AdaptersTest, RequestsWaitForOneThatIsBeingLoaded) {
  ASSERT_TRUE(adapters_.StartLoad(Named("a")).ok());
  EXPECT_EQ(FieldOf(adapters_.StartLoad(Named("a"))), "lora_name");
  EXPECT_TRUE(adapters_.List().empty());
  const auto use = adapters_.Take("a", "");
  ASSERT_TRUE(use.ok());
  EXPECT_TRUE(use->is_loading);
  EXPECT_FALSE(*adapters_.IsReady("id-a"));
  adapters_.EndLoad("id-a", OkStatus(), true);
  EXPECT_TRUE(*adapters_.IsReady("id-a"));
}

TEST_F(AdaptersTest, OneThatCannotBeLoadedIsTheErrorOfThoseThatWait) {
  ASSERT_TRUE(adapters_.StartLoad(Named("a")).ok());
  ASSERT_TRUE(adapters_.Take("a", "").ok());
  adapters_.EndLoad("id-a", Error(StatusCode::kInvalidArgument, "no such folder"), true);
  const auto ready = adapters_.IsReady("id-a");
  EXPECT_EQ(FieldOf(ready.status()), "lora_path");
  EXPECT_NE(MessageOf(ready.status()).find("no such folder"), std::string::npos);
  EXPECT_FALSE(adapters_.Take("a", "").ok());
  adapters_.GiveBack("id-a");
  Load("a");
  EXPECT_TRUE(adapters_.Take("a", "").ok());
}

// One rank has it and another does not, or nobody has said.
TEST_F(AdaptersTest, OneThatIsLoadedInPartCanOnlyBeUnloaded) {
  ASSERT_TRUE(adapters_.StartLoad(Named("a")).ok());
  adapters_.EndLoad("id-a", Error(StatusCode::kInvalidArgument, "rank 1 has no memory"), false);
  EXPECT_FALSE(adapters_.Take("a", "").ok());
  EXPECT_NE(MessageOf(adapters_.StartLoad(Named("a"))).find("unload it"), std::string::npos);
  EXPECT_EQ(*adapters_.StartUnload("a"), "id-a");
  adapters_.EndUnload("id-a", false);
  EXPECT_FALSE(adapters_.Take("a", "").ok());
  EXPECT_EQ(*adapters_.StartUnload("a"), "id-a");
  adapters_.EndUnload("id-a", true);
  EXPECT_TRUE(adapters_.StartLoad(Named("a")).ok());
}

TEST_F(AdaptersTest, TheOneUsedLeastRecentlyMakesRoom) {
  adapters_.SetLimit(2);
  Load("a");
  Load("b");
  EXPECT_EQ(Evict(), "nothing");
  Use("a");
  Load("c");
  EXPECT_EQ(Evict(), "b");
  EXPECT_EQ(Evict(), "nothing");
}

TEST_F(AdaptersTest, PinnedOnesStayAndThoseInUseUntilTheyAreNot) {
  adapters_.SetLimit(2);
  Load("a", true);
  Load("b");
  ASSERT_TRUE(adapters_.Take("b", "").ok());
  Load("c");
  ASSERT_TRUE(adapters_.Take("c", "").ok());
  EXPECT_EQ(Evict(), "nothing");
  EXPECT_TRUE(adapters_.GiveBack("id-b"));
  EXPECT_EQ(Evict(), "b");
  EXPECT_FALSE(adapters_.GiveBack("id-c"));
}

TEST_F(AdaptersTest, TheOneLoadedLastStaysUntilAnotherCanLeave) {
  adapters_.SetLimit(1);
  Load("a");
  ASSERT_TRUE(adapters_.Take("a", "").ok());
  Load("b");
  EXPECT_EQ(Evict(), "nothing");
  EXPECT_TRUE(adapters_.GiveBack("id-a"));
  EXPECT_EQ(Evict(), "a");
}

// The engine has died meanwhile, say; nothing asks again and again.
TEST_F(AdaptersTest, OneThatCannotBeUnloadedIsNotEvictedAgain) {
  adapters_.SetLimit(1);
  Load("a");
  Load("b");
  ASSERT_EQ(adapters_.StartEviction()->name, "a");
  adapters_.EndUnload("id-a", false);
  EXPECT_FALSE(adapters_.StartEviction().has_value());
  EXPECT_TRUE(adapters_.Take("a", "").ok());
}

TEST_F(AdaptersTest, WhereAllArePinnedNothingMoreIsLoaded) {
  adapters_.SetLimit(1);
  Load("a", true);
  const Status refused = adapters_.StartLoad(Named("b"));
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(FieldOf(refused), "lora_name");
}

TEST_F(AdaptersTest, AnEvictedOneIsLoadedAgainByTheFirstThatNamesIt) {
  adapters_.SetLimit(1);
  Load("a");
  Load("b");
  ASSERT_EQ(Evict(), "a");
  const auto first = adapters_.Take("a", "");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(first->load.has_value());
  EXPECT_EQ(first->load->path, "/a");
  EXPECT_NE(first->id, "id-a");  // what the scheduler still frees is another
  const auto second = adapters_.Take("a", "");
  EXPECT_FALSE(second->load.has_value());
  EXPECT_TRUE(second->is_loading);
  EXPECT_EQ(second->id, first->id);
  adapters_.EndLoad(first->id, Error(StatusCode::kInvalidArgument, "gone"), true);
  EXPECT_FALSE(adapters_.IsReady(first->id).ok());
  EXPECT_TRUE(adapters_.Take("a", "")->load.has_value());  // later ones try again
}

TEST_F(AdaptersTest, AnEvictedOneIsForgottenWhereItIsUnloaded) {
  adapters_.SetLimit(1);
  Load("a");
  Load("b");
  ASSERT_EQ(Evict(), "a");
  EXPECT_EQ(*adapters_.StartUnload("a"), "");
  EXPECT_FALSE(adapters_.Take("a", "").ok());
}

TEST_F(AdaptersTest, TensorsCannotBeLoadedAgainWithoutTheirClient) {
  adapters_.SetLimit(1);
  adapters_.Add({"a", "id-a", "__tensor__"});
  Load("b");
  ASSERT_EQ(Evict(), "a");
  const auto refused = adapters_.Take("a", "");
  EXPECT_EQ(FieldOf(refused.status()), "lora_path");
  EXPECT_NE(MessageOf(refused.status()).find("evicted"), std::string::npos);
}

// Its load and its unloading overlap: the name is free at once.
TEST_F(AdaptersTest, AnEvictionThatFailsGivesItsNameToNobodyElse) {
  adapters_.SetLimit(1);
  Load("a");
  Load("b");
  const auto oldest = adapters_.StartEviction();
  const auto again = adapters_.Take("a", "");
  adapters_.EndUnload(oldest->id, false);
  adapters_.EndLoad(again->id, OkStatus(), true);
  EXPECT_EQ(adapters_.Take("a", "")->id, again->id);
}

}  // namespace
}  // namespace portico::sglang
