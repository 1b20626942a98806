#include "service/generation/spelled_logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tokenizer/test_tokenizers.h"

namespace portico {
namespace {

TEST(SpellBytes, WhatIsUtf8IsItself) {
  for (const char* text : {"", " world", "\n", "\xC3\xA9", "\xF0\x9F\x98\x80", "a\\b"}) {
    EXPECT_EQ(SpellBytes(text), text);
  }
}

TEST(SpellBytes, WhatIsNotIsSpelledSoThatNoTwoAreTheSame) {
  EXPECT_EQ(SpellBytes("\xF0\x9F"), "bytes:\\xf0\\x9f");
  EXPECT_EQ(SpellBytes(" \xE2\x80"), "bytes: \\xe2\\x80");
  EXPECT_EQ(SpellBytes("\\\xFF\n\xC3\xA9"), "bytes:\\x5c\\xff\\x0a\\xc3\\xa9");
}

std::vector<TextPositionLogprobs> SpellIds(const std::vector<TokenId>& ids, PromptLogprobs prompt) {
  static const auto* const tokenizer =
      new std::shared_ptr<const Tokenizer>(*Tokenizer::FromJson(tokenizer::ByteLevelJson({})));
  std::vector<PositionLogprobs> engine;
  for (size_t i = std::max<size_t>(prompt.start, 1); i < ids.size(); ++i) {
    engine.emplace_back().chosen = {ids[i], -1.0f};
  }
  prompt.tokens = ids;
  prompt.from_engine = engine;
  return SpellPrompt(prompt, **tokenizer);
}

// 256 is <s>, which is special.
TEST(SpellPrompt, SpecialTokensOfIdsAreHiddenByTheRequestsRuleAndThoseOfATextNever) {
  const std::vector<TokenId> ids = {256, 'h', 256, 'i'};
  for (const bool decoded : {false, true}) {
    for (const bool skip : {false, true}) {
      const auto spelled = SpellIds(ids, {.decoded = decoded, .skip_special_tokens = skip});
      ASSERT_EQ(spelled.size(), 4u);
      EXPECT_EQ(spelled[2].chosen.text, "<s>");
      EXPECT_EQ(spelled[2].hidden, decoded && skip);
      EXPECT_FALSE(spelled[3].hidden);
    }
  }
}

TEST(SpellPrompt, TheFirstHasNoLogprobAndTheOthersFollowIt) {
  const std::vector<TokenId> ids = {'a', 'b', 'c', 'd'};
  for (const size_t start : {0, 1, 3}) {
    const auto spelled = SpellIds(ids, {.start = start});
    ASSERT_EQ(spelled.size(), ids.size() - start);
    EXPECT_FALSE(spelled[0].chosen.logprob.has_value());
    for (size_t i = 0; i < spelled.size(); ++i) {
      EXPECT_EQ(spelled[i].chosen.token, ids[start + i]);
      EXPECT_EQ(spelled[i].chosen.text, std::string(1, static_cast<char>(ids[start + i])));
    }
  }
  EXPECT_EQ(SpellIds(ids, {.spells = false})[1].chosen.text, "");
}

}  // namespace
}  // namespace portico
