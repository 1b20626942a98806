#include "grammar/mask/space_bound.h"

#include <gtest/gtest.h>

#include <string>

#include "grammar/compile/grammar_pack.h"
#include "grammar/grammar_for_test.h"
#include "grammar/mask/token_table.h"

namespace portico::grammar {
namespace {

std::shared_ptr<const CompiledGrammar> Compiled(const GrammarText& text, bool is_json) {
  static const auto tokens =
      std::make_shared<const TokenTable>(MakeTokenizerInfo(ByteVocabulary()));
  return *CompiledGrammar::Read(PackGrammar(*CompiledForTest(text), is_json), tokens);
}

// Whether `next` may follow `text`.
bool MayFollow(const std::shared_ptr<const CompiledGrammar>& grammar, const std::string& text,
               char next) {
  Matcher matcher(grammar);
  for (const char c : text) EXPECT_TRUE(matcher.Accept(static_cast<unsigned char>(c))) << text;
  std::vector<uint32_t> mask(MaskWords(ByteVocabulary().texts.size()));
  EXPECT_TRUE(matcher.FillMask(mask));
  const auto id = static_cast<unsigned char>(next);
  return (mask[id / 32] >> (id % 32) & 1) != 0;
}

const std::string kLong(SpaceBound::kMaxBytes, ' ');

// A small model wrote white space between two members until max_tokens cut its call.
TEST(SpaceBoundTest, WhiteSpaceBetweenThePartsOfJsonComesToAnEnd) {
  const auto grammar = Compiled({GrammarKind::kJsonObject, ""}, true);
  EXPECT_TRUE(MayFollow(grammar, "{" + kLong.substr(1), ' '));
  EXPECT_FALSE(MayFollow(grammar, "{" + kLong, ' '));
  EXPECT_FALSE(MayFollow(grammar, "{" + kLong, '\n'));
  EXPECT_TRUE(MayFollow(grammar, "{" + kLong, '"'));
  EXPECT_FALSE(MayFollow(grammar, "{\"a\":" + kLong, '\t'));
  EXPECT_TRUE(MayFollow(grammar, "{\"a\":" + kLong + "[" + kLong + "1", ' '));
}

TEST(SpaceBoundTest, WhiteSpaceInStringsIsNotCounted) {
  const auto grammar = Compiled({GrammarKind::kJsonObject, ""}, true);
  EXPECT_TRUE(MayFollow(grammar, "{\"a\": \"" + kLong + kLong, ' '));
  EXPECT_TRUE(MayFollow(grammar, "{\"a\": \"\\\"" + kLong + kLong, ' '));
  EXPECT_TRUE(MayFollow(grammar, "{\"" + kLong + kLong, ' '));
}

TEST(SpaceBoundTest, OtherGrammarsSayThemselvesWhatWhiteSpaceTheyTake) {
  const auto regex = Compiled({GrammarKind::kRegex, "\\{[ a]*\\}"}, false);
  EXPECT_TRUE(MayFollow(regex, "{" + kLong + kLong, ' '));
}

TEST(SpaceBoundTest, WhiteSpaceThatMustComeComes) {
  const auto constant =
      Compiled({GrammarKind::kJsonSchema, "{\"const\": [\"" + kLong + kLong + "\"]}"}, true);
  EXPECT_TRUE(MayFollow(constant, "[\"" + kLong, ' '));
  const auto forced = Compiled({GrammarKind::kRegex, "\\{ {80}\\}"}, true);
  EXPECT_TRUE(MayFollow(forced, "{" + kLong, ' '));
}

}  // namespace
}  // namespace portico::grammar
