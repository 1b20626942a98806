#include "grammar/mask/space_bound.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "grammar/compile/grammar_pack.h"
#include "grammar/grammar_for_test.h"
#include "grammar/mask/token_table.h"

namespace portico::grammar {
namespace {

std::shared_ptr<const CompiledGrammar> Compiled(const GrammarText& text, SpaceRule rule) {
  static const auto tokens =
      std::make_shared<const TokenTable>(MakeTokenizerInfo(ByteVocabulary()));
  return *CompiledGrammar::Read(PackGrammar(*CompiledForTest(text), rule), tokens);
}

std::shared_ptr<const CompiledGrammar> CompiledTag(const std::string& format) {
  const GrammarText tag{GrammarKind::kStructuralTag,
                        R"({"type":"structural_tag","format":)" + format + "}"};
  return Compiled(tag, SpaceRuleOf(tag));
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
  const auto grammar = Compiled({GrammarKind::kJsonObject, ""}, SpaceRule::kJson);
  EXPECT_TRUE(MayFollow(grammar, "{" + kLong.substr(1), ' '));
  EXPECT_FALSE(MayFollow(grammar, "{" + kLong, ' '));
  EXPECT_FALSE(MayFollow(grammar, "{" + kLong, '\n'));
  EXPECT_TRUE(MayFollow(grammar, "{" + kLong, '"'));
  EXPECT_FALSE(MayFollow(grammar, "{\"a\":" + kLong, '\t'));
  EXPECT_TRUE(MayFollow(grammar, "{\"a\":" + kLong + "[" + kLong + "1", ' '));
}

TEST(SpaceBoundTest, WhiteSpaceInStringsIsNotCounted) {
  const auto grammar = Compiled({GrammarKind::kJsonObject, ""}, SpaceRule::kJson);
  EXPECT_TRUE(MayFollow(grammar, "{\"a\": \"" + kLong + kLong, ' '));
  EXPECT_TRUE(MayFollow(grammar, "{\"a\": \"\\\"" + kLong + kLong, ' '));
  EXPECT_TRUE(MayFollow(grammar, "{\"" + kLong + kLong, ' '));
}

TEST(SpaceBoundTest, OtherGrammarsSayThemselvesWhatWhiteSpaceTheyTake) {
  const GrammarText own{GrammarKind::kRegex, "\\{[ a]*\\}"};
  const auto regex = Compiled(own, SpaceRuleOf(own));
  EXPECT_TRUE(MayFollow(regex, "{" + kLong + kLong, ' '));
}

TEST(SpaceBoundTest, WhiteSpaceThatMustComeComes) {
  const auto constant = Compiled(
      {GrammarKind::kJsonSchema, "{\"const\": [\"" + kLong + kLong + "\"]}"}, SpaceRule::kJson);
  EXPECT_TRUE(MayFollow(constant, "[\"" + kLong, ' '));
  for (const SpaceRule rule : {SpaceRule::kJson, SpaceRule::kNarrow}) {
    const auto forced = Compiled({GrammarKind::kRegex, "\\{ {80}\\}"}, rule);
    EXPECT_TRUE(MayFollow(forced, "{" + kLong, ' '));
  }
}

// What has no token was looked for in the mask by a shift of -1 bits.
TEST(SpaceBoundTest, AVocabularyMayHaveNoTokenOfASpaceAlone) {
  Vocabulary vocabulary = ByteVocabulary();
  vocabulary.texts[' '].clear();
  const auto tokens = std::make_shared<const TokenTable>(MakeTokenizerInfo(vocabulary));
  const auto forced =
      CompileText({GrammarKind::kRegex, "\\{\\n{80}\\}"}, vocabulary, tokens->tokens);
  ASSERT_TRUE(forced.ok()) << forced.status();
  const auto grammar = CompiledGrammar::Read(PackGrammar(*forced, SpaceRule::kNarrow), tokens);
  ASSERT_TRUE(grammar.ok()) << grammar.status();
  for (const size_t lines : {SpaceBound::kMaxBytes, SpaceBound::kMaxBytes + 1}) {
    EXPECT_TRUE(MayFollow(*grammar, "{" + std::string(lines, '\n'), '\n')) << lines;
  }
}

// Seed-OSS' form, and others with tags: the demo model wrote line ends between two tags until max_tokens cut its call.
TEST(SpaceBoundTest, WhiteSpaceBetweenTagsComesToAnEnd) {
  const auto grammar = CompiledTag(
      R"({"type":"tag","begin":"<function=w>","end":"</function>","content":{"type":"json_schema",)"
      R"("style":"qwen_xml","json_schema":{"type":"object","properties":{"n":{"type":"integer"},)"
      R"("s":{"type":"string"},"o":{"type":"array","items":{"type":"integer"}}},)"
      R"("required":["n","s","o"]}}})");
  const std::string number = "<function=w>" + kLong + "<parameter=n>";
  EXPECT_TRUE(MayFollow(grammar, "<function=w>" + kLong.substr(1), '\n'));
  EXPECT_FALSE(MayFollow(grammar, "<function=w>" + kLong, '\n'));
  EXPECT_TRUE(MayFollow(grammar, "<function=w>" + kLong, '<'));
  EXPECT_FALSE(MayFollow(grammar, number + kLong, ' '));
  EXPECT_TRUE(MayFollow(grammar, number + kLong, '7'));
  const std::string text = number + "7</parameter>\n<parameter=s>";
  EXPECT_FALSE(MayFollow(grammar, number + "7</parameter>" + kLong, '\n'));
  EXPECT_TRUE(MayFollow(grammar, text + kLong + kLong, ' '));
  EXPECT_TRUE(MayFollow(grammar, text + kLong + kLong, '<'));
  const std::string list = text + kLong + kLong + "</parameter><parameter=o>[";
  EXPECT_FALSE(MayFollow(grammar, list + kLong, ' '));
  EXPECT_TRUE(MayFollow(grammar, list + kLong, ']'));
}

// The demo model wrote spaces where only a line end leads to the tag behind.
TEST(SpaceBoundTest, ATagThatBeginsWithWhiteSpaceComes) {
  for (const char first : {'\n', ' '}) {
    const std::string end = std::string(first == '\n' ? "\\n" : " ") + "</f>";
    const auto grammar = CompiledTag(
        R"({"type":"tag","begin":"<f>","end":")" + end +
        R"(","content":{"type":"json_schema","style":"qwen_xml","json_schema":{"type":"object",)"
        R"("properties":{"n":{"type":"integer"}},"required":["n"]}}})");
    std::string text = "<f><parameter=n>7</parameter>" + kLong;
    for (int i = 0; i < 2 && !MayFollow(grammar, text, '<'); ++i) {
      const bool line = MayFollow(grammar, text, '\n');
      EXPECT_NE(line, MayFollow(grammar, text, ' '));
      EXPECT_FALSE(MayFollow(grammar, text, '\t'));
      text += line ? '\n' : ' ';
    }
    EXPECT_TRUE(MayFollow(grammar, text, '<')) << end;
    EXPECT_FALSE(MayFollow(grammar, text, ' ')) << end;
  }
}

TEST(SpaceBoundTest, WhiteSpaceInTheTextAroundCallsIsNotCounted) {
  const auto grammar = CompiledTag(
      R"({"type":"triggered_tags","triggers":["<f>"],"tags":[{"begin":"<f>","end":"</f>",)"
      R"("content":{"type":"json_schema","json_schema":{"type":"array","items":{"type":"integer"}}}}]})");
  EXPECT_TRUE(MayFollow(grammar, "a" + kLong + kLong, ' '));
  EXPECT_FALSE(MayFollow(grammar, "{ <f>[" + kLong, ' '));
  EXPECT_TRUE(MayFollow(grammar, "{ <f>[" + kLong + "1]</f>" + kLong, '\n'));
}

TEST(SpaceBoundTest, WhiteSpaceThatAClientsOwnGrammarTakesInATagIsFree) {
  const auto grammar = CompiledTag(
      R"({"type":"tag","begin":"<f>","end":"</f>","content":{"type":"regex","pattern":"[ a]*"}})");
  EXPECT_TRUE(MayFollow(grammar, "<f>" + kLong, ' '));
}

}  // namespace
}  // namespace portico::grammar
