#include "service/output/parsed_output.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
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

// What this family puts before an answer came before there was a delta to put it in.
TEST(ParsedOutput, BeginsWithWhatTheFamilyPutsBeforeAnAnswer) {
  for (const std::string_view text : {"a", ""}) {
    auto plan = std::make_shared<OutputPlan>();
    plan->format.reasoning = parser::FindReasoning("minimax-append-think");
    ParsedOutput output(std::move(plan));
    TextDelta delta;
    EXPECT_FALSE(output.IsPlain("a"));
    output.Feed(text, &delta);
    output.Finish(&delta);
    EXPECT_EQ(delta.text, "<think>" + std::string(text));
  }
}

TEST(ParsedOutput, IsReadFromTheFirstTextThatIsNotPlainOn) {
  auto plan = std::make_shared<OutputPlan>();
  plan->format.reasoning = parser::FindReasoning("qwen3");
  ParsedOutput output(std::move(plan));
  TextDelta delta;
  EXPECT_TRUE(output.IsPlain("a > b"));
  EXPECT_TRUE(output.IsPlain("a < b"));
  EXPECT_FALSE(output.IsPlain("a <"));
  EXPECT_FALSE(output.in_reasoning());
  output.Feed("a <", &delta);
  EXPECT_EQ(delta.text, "a ");
  EXPECT_FALSE(output.IsPlain("a"));
  output.Feed("think>t", &delta);
  EXPECT_TRUE(output.in_reasoning());
  output.Feed("</think>b", &delta);
  output.Finish(&delta);
  EXPECT_EQ(delta.reasoning, "t");
  EXPECT_EQ(delta.text, "a b");
}

// Of one that has not been fed nothing is held, and nothing was rejected.
TEST(ParsedOutput, OfPlainTextAloneEndsWithNothing) {
  auto plan = std::make_shared<OutputPlan>();
  plan->format.reasoning = parser::FindReasoning("qwen3");
  ParsedOutput output(std::move(plan));
  TextDelta delta;
  EXPECT_TRUE(output.IsPlain("a"));
  output.Finish(&delta);
  EXPECT_EQ(delta.text, "");
  EXPECT_EQ(output.rejected(), 0);
  EXPECT_FALSE(output.ends_in_calls());
}

TEST(ParsedOutput, HasNoPlainTextWhereSpaceIsHeldOrReasoningHasBegun) {
  for (const bool tools : {false, true}) {
    auto plan = std::make_shared<OutputPlan>();
    plan->format.reasoning = parser::FindReasoning("qwen3");
    plan->format.in_reasoning = !tools;
    if (tools) plan->format.tools = parser::FindToolFamily("hermes");
    EXPECT_FALSE(ParsedOutput(std::move(plan)).IsPlain("a")) << tools;
  }
}

TEST(NewCallId, IsWrittenAsTheFamilyWritesIt) {
  EXPECT_EQ(NewCallId(parser::CallIds::kRandom, "f", 0).size(), 29u);
  EXPECT_EQ(NewCallId(parser::CallIds::kNineCharacters, "f", 0).size(), 9u);
  EXPECT_EQ(NewCallId(parser::CallIds::kFunctionsCounter, "f", 3), "functions.f:3");
  EXPECT_EQ(NewCallId(parser::CallIds::kNameCounter, "f", 3), "f:3");
}

}  // namespace
}  // namespace portico
