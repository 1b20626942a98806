#include "router/fleet/model_cards.h"

#include <gtest/gtest.h>

#include <memory>

#include "router/policy/make_policy.h"

namespace portico::router {
namespace {

TEST(ModelCardsTest, ACardIsReadAsFarAsItSaysSomething) {
  const auto cards = ReadModelCards(R"({"object": "list", "data": [
      {"id": "full", "created": 1700000000, "root": "/models/full", "max_model_len": 32768},
      {"id": "bare"},
      {"id": "odd", "created": "now", "root": null, "max_model_len": -1},
      {"created": 1}, 7]})");
  ASSERT_TRUE(cards.has_value());
  ASSERT_EQ(cards->size(), 3u);
  EXPECT_EQ((*cards)[0], (ModelCard{"full", "/models/full", 1700000000, 32768}));
  EXPECT_EQ((*cards)[1], (ModelCard{"bare", "", 0, 0}));
  EXPECT_EQ((*cards)[2], (ModelCard{"odd", "", 0, 0}));
}

TEST(ModelCardsTest, AnotherFormIsNone) {
  for (const char* other : {"", "[]", "{}", R"({"data": {}})", "no JSON"}) {
    EXPECT_FALSE(ReadModelCards(other).has_value()) << other;
  }
}

TEST(ModelCardsTest, TheUnionPromisesWhatEveryWorkerKeeps) {
  WorkerRegistry registry([](Role, const std::string&) -> std::shared_ptr<Policy> {
    return *MakePolicy("round_robin", {});
  });
  const WorkerPtr a = *registry.Add(*ParseWorkerUrl("http://a:1"), {});
  const WorkerPtr b = *registry.Add(*ParseWorkerUrl("http://b:1"), {});
  WorkerSpec named = *ParseWorkerUrl("http://c:1");
  named.models = {"named"};
  const WorkerPtr c = *registry.Add(named, {});
  a->SetCards({{"m", "", 20, 4096}, {"x", "x", 5, 0}});
  registry.SetModels(*a, {"m", "x"});
  b->SetCards({{"m", "base", 10, 1024}});
  registry.SetModels(*b, {"m"});
  c->SetCards({{"m", "other", 1, 1}, {"named", "", 7, 8}});
  const auto cards = UnitedCards(*registry.set());
  ASSERT_EQ(cards.size(), 3u);
  EXPECT_EQ(cards[0], (ModelCard{"m", "base", 10, 1024}));
  EXPECT_EQ(cards[1], (ModelCard{"named", "", 7, 8}));
  EXPECT_EQ(cards[2], (ModelCard{"x", "x", 5, 0}));
}

}  // namespace
}  // namespace portico::router
