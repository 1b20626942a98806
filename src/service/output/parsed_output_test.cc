#include "service/output/parsed_output.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "parser/tool/families.h"

namespace portico {
namespace {

constexpr TokenId kChannelToken = 5;
constexpr TokenId kMessageToken = 6;

class ParsedOutputTest : public testing::Test {
 protected:
  ParsedOutputTest() {
    auto plan = std::make_shared<OutputPlan>();
    plan->format.reasoning = parser::FindReasoning("gpt-oss");
    plan->markers = &markers_;
    plan->marked_by_tokens = true;
    output_ = std::make_unique<ParsedOutput>(std::move(plan));
  }

  const absl::flat_hash_set<TokenId> markers_ = {kChannelToken, kMessageToken};
  std::unique_ptr<ParsedOutput> output_;
  TextDelta delta_;
};

TEST_F(ParsedOutputTest, ATokenThatSpellsAMarkerIsText) {
  output_->FeedToken(kChannelToken, "<|channel|>", "<|channel|>", &delta_);
  output_->FeedToken(1, "final", "final", &delta_);
  output_->FeedToken(kMessageToken, "<|message|>", "<|message|>", &delta_);
  output_->FeedToken(2, "<|end|>", "<|end|>", &delta_);
  output_->Finish(&delta_);
  EXPECT_EQ(delta_.text, "<|end|>");
}

TEST_F(ParsedOutputTest, WhatWasHeldBackComesInFrontOfAMarker) {
  output_->FeedToken(kChannelToken, "<|channel|>", "<|channel|>", &delta_);
  output_->FeedToken(1, "ana", "ana", &delta_);
  output_->FeedToken(kMessageToken, "lysis<|message|>", "<|message|>", &delta_);
  output_->FeedToken(1, "Hm", "Hm", &delta_);
  output_->Finish(&delta_);
  EXPECT_EQ(delta_.reasoning, "Hm");
  EXPECT_EQ(delta_.text, "");
}

TEST(NewCallId, IsWrittenAsTheFamilyWritesIt) {
  EXPECT_EQ(NewCallId(parser::CallIds::kRandom, "f", 0).size(), 29u);
  EXPECT_EQ(NewCallId(parser::CallIds::kNineCharacters, "f", 0).size(), 9u);
  EXPECT_EQ(NewCallId(parser::CallIds::kFunctionsCounter, "f", 3), "functions.f:3");
  EXPECT_EQ(NewCallId(parser::CallIds::kNameCounter, "f", 3), "f:3");
}

}  // namespace
}  // namespace portico
