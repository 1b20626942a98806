#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/sglang/wire/wire_requests.h"

namespace portico::sglang {
namespace {

GenerateRequest OneOfSeveral(size_t tokens) {
  GenerateRequest request;
  request.stream = 7;
  request.first_choice = 7;
  request.prompt = std::make_shared<std::vector<TokenId>>(tokens, 1);
  return request;
}

template <typename Change>
bool WantsWith(Change change, const Facts& facts = {}) {
  GenerateRequest request = OneOfSeveral(1000);
  RequestExtras extras;
  change(extras);
  request.extras = std::make_shared<RequestExtras>(std::move(extras));
  return WantsPrefix(facts, request);
}

TEST(SharedPrefix, OnlySeveralChoicesOfALongPromptWaitForIt) {
  EXPECT_TRUE(WantsPrefix({}, OneOfSeveral(33)));
  EXPECT_FALSE(WantsPrefix({}, OneOfSeveral(32)));
  GenerateRequest alone = OneOfSeveral(1000);
  alone.first_choice = 0;
  EXPECT_FALSE(WantsPrefix({}, alone));
}

TEST(SharedPrefix, ThePagesOfTheCacheAreWhatIsShared) {
  Facts facts;
  facts.page_size = 64;
  EXPECT_FALSE(WantsPrefix(facts, OneOfSeveral(64)));
  EXPECT_TRUE(WantsPrefix(facts, OneOfSeveral(65)));
  facts.caches_prefixes = false;
  EXPECT_FALSE(WantsPrefix(facts, OneOfSeveral(65)));
}

TEST(SharedPrefix, WhatLogProbabilitiesAreWantedOfIsComputedByEachChoice) {
  GenerateRequest request = OneOfSeveral(1000);
  request.return_logprobs = true;
  EXPECT_TRUE(WantsPrefix({}, request));
  request.prompt_logprobs_start = 31;
  EXPECT_FALSE(WantsPrefix({}, request));
  request.prompt_logprobs_start = 32;
  EXPECT_TRUE(WantsPrefix({}, request));
}

TEST(SharedPrefix, SessionsAndHiddenStatesDoWithoutIt) {
  EXPECT_TRUE(WantsWith([](RequestExtras& extras) { extras.lora_path = "a"; }));
  EXPECT_FALSE(WantsWith([](RequestExtras& extras) { extras.session.emplace(); }));
  EXPECT_FALSE(WantsWith([](RequestExtras& extras) { extras.return_hidden_states = true; }));
  EXPECT_FALSE(WantsWith(
      [](RequestExtras& extras) { extras.media = std::make_shared<const RequestMedia>(); }));
  Facts half;
  half.half_of_pair = true;
  EXPECT_FALSE(WantsWith([](RequestExtras&) {}, half));
}

TEST(SharedPrefix, ThereIsOneForARankThatAllChoicesGoTo) {
  Facts facts;
  facts.ranks = 2;
  EXPECT_FALSE(WantsWith([](RequestExtras&) {}, facts));
  EXPECT_TRUE(WantsWith([](RequestExtras& extras) { extras.data_parallel_rank = 1; }, facts));
}

}  // namespace
}  // namespace portico::sglang
