#include "service/plan/end_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace portico {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::shared_ptr<const Tokenizer> WithTokens(std::string_view vocab) {
  auto made = Tokenizer::FromJson(
      R"({"version":"1.0","model":{"type":"WordLevel","unk_token":"u","vocab":)" +
      std::string(vocab) + "}}");
  EXPECT_TRUE(made.ok()) << made.status();
  return *made;
}

TEST(EndTokensTest, ATokenizersEndTokenAndLlamasEndOfMessageEndAnswers) {
  const auto llama = WithTokens(R"({"u":0,"<|eot_id|>":1,"<|eom_id|>":2})");
  EXPECT_THAT(EndTokensOf(*llama, "<|eot_id|>"), ElementsAre(1, 2));
  EXPECT_THAT(EndTokensOf(*llama, "<|eom_id|>"), ElementsAre(2));
  EXPECT_THAT(EndTokensOf(*llama, ""), ElementsAre(2));
  const auto other = WithTokens(R"({"u":0,"</s>":1})");
  EXPECT_THAT(EndTokensOf(*other, "</s>"), ElementsAre(1));
  EXPECT_THAT(EndTokensOf(*other, "<missing>"), IsEmpty());
}

TEST(EndTokensTest, TheModelsComeFirstAndEachOnceAndNoneBeyondItsRows) {
  EXPECT_THAT(JoinEndTokens({5, 3}, std::vector<TokenId>{3, 9, 7}, 9), ElementsAre(5, 3, 7));
  EXPECT_THAT(JoinEndTokens({}, std::vector<TokenId>{9}, 9), IsEmpty());
}

TEST(EndTokensTest, TheyAreSpelledForThePersonWhoStartsAServer) {
  const auto tokenizer = WithTokens(R"({"u":0,"</s>":1})");
  EXPECT_EQ(SpellTokens(*tokenizer, std::vector<TokenId>{1, 0}), "</s> (1), u (0)");
  EXPECT_EQ(SpellTokens(*tokenizer, {}), "no token");
}

}  // namespace
}  // namespace portico
