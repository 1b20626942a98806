#include "router/fleet/model_cards.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "router/policy/make_policy.h"

namespace portico::router {
namespace {

TEST(ModelCardsTest, ACardIsReadAsFarAsItSaysSomething) {
  std::string fault;
  const auto cards = ReadModelCards(R"({"object": "list", "data": [
      {"id": "full", "created": 1700000000, "root": "/models/full", "max_model_len": 32768},
      {"id": "bare"},
      {"id": "odd", "created": "now", "root": null, "max_model_len": -1},
      {"created": 1}, 7]})",
                                    &fault);
  EXPECT_EQ(fault, "created is \"now\"");
  ASSERT_TRUE(cards.has_value());
  ASSERT_EQ(cards->size(), 3u);
  EXPECT_EQ((*cards)[0], (ModelCard{"full", "/models/full", 1700000000, 32768}));
  EXPECT_EQ((*cards)[1], (ModelCard{"bare", "", 0, 0}));
  EXPECT_EQ((*cards)[2], (ModelCard{"odd", "", 0, 0}));
}

TEST(ModelCardsTest, AnotherFormIsNone) {
  for (const char* other : {"", "[]", "{}", R"({"data": {}})", "no JSON"}) {
    std::string fault;
    EXPECT_FALSE(ReadModelCards(other, &fault).has_value()) << other;
    EXPECT_FALSE(fault.empty()) << other;
  }
}

TEST(ModelCardsTest, WhatIsWrongWithAListIsSaid) {
  const std::pair<const char*, const char*> lists[] = {
      {R"([{"id": "m", "created": 0, "root": null, "max_model_len": null, "more": [1]}])", ""},
      {R"([{"id": "m", "max_model_len": 1e300}])", "max_model_len is 1e+300"},
      {R"([{"id": "m", "max_model_len": -5}])", "max_model_len is -5"},
      {R"([{"id": "m", "max_model_len": "8192"}])", "max_model_len is \"8192\""},
      {R"([{"id": "m", "root": 7}])", "root is no short text"},
      {R"([{"id": ["m"]}])", "id is no short text"},
      {R"([{"id": ""}])", "a model has no name"},
      {R"(["m"])", "a model has no name"},
      {R"([{"id": "m"}, {"id": "m"}])", "it has the model \"m\" twice"}};
  for (const auto& [list, wrong] : lists) {
    std::string fault = "before";
    ASSERT_TRUE(ReadModelCards(R"({"data": )" + std::string(list) + "}", &fault).has_value());
    EXPECT_EQ(fault, wrong) << list;
  }
}

TEST(ModelCardsTest, AListWithoutEndIsCutAndSaidToBe) {
  std::string body = R"({"data": [)";
  for (int i = 0; i < 2000; ++i) {
    body += (i > 0 ? R"(,{"id": "m)" : R"({"id": "m)") + std::to_string(i) + R"("})";
  }
  std::string fault;
  const auto cards = ReadModelCards(body + "]}", &fault);
  ASSERT_TRUE(cards.has_value());
  EXPECT_EQ(cards->size(), kMaxModels);
  EXPECT_EQ(fault, "it has more than 1024 models");
}

// A gateway listed models whose last worker had died hours ago.
TEST(ModelCardsTest, AModelIsListedWhileAWorkerMayTakeRequestsForIt) {
  WorkerRegistry registry([](Role, const std::string&) -> std::shared_ptr<Policy> {
    return *MakePolicy("round_robin", {});
  });
  const WorkerPtr a = *registry.Add(*ParseWorkerUrl("http://a:1"), {});
  const WorkerPtr b = *registry.Add(*ParseWorkerUrl("http://b:1"), {});
  registry.SetModels(*a, {"both", "mine"});
  registry.SetModels(*b, {"both"});
  const auto listed = [&] {
    std::string names;
    for (const ModelCard& card : UnitedCards(*registry.set())) names += card.id + " ";
    return names;
  };
  EXPECT_EQ(listed(), "both mine ");
  for (const Health health : {Health::kUnhealthy, Health::kStalled}) {
    a->SetHealth(health);
    EXPECT_EQ(listed(), "both ");
  }
  a->SetHealth(Health::kHealthy);
  EXPECT_EQ(listed(), "both mine ");
  a->SetDraining(true);
  b->SetHealth(Health::kUnhealthy);
  EXPECT_EQ(listed(), "");
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
