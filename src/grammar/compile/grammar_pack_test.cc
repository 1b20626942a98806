#include "grammar/compile/grammar_pack.h"

#include <gtest/gtest.h>
#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "grammar/grammar_for_test.h"
#include "grammar/mask/mask_tensor.h"

namespace portico::grammar {
namespace {

// So many tokens of letters and of digits that the core has lists of what a state allows, lists of what it does not, and bit sets.
const Vocabulary& WordVocabulary() {
  static const Vocabulary vocabulary = [] {
    Vocabulary made = ByteVocabulary();
    for (int i = 0; i < 2500; ++i) {
      std::string number = std::to_string(100000 + i);
      std::string word = number;
      for (char& c : word) c = static_cast<char>('a' + (c - '0'));
      made.texts.push_back(std::move(word));
      made.texts.push_back(std::move(number));
    }
    return made;
  }();
  return vocabulary;
}

const xgrammar::TokenizerInfo& WordTokens() {
  static const xgrammar::TokenizerInfo tokens = MakeTokenizerInfo(WordVocabulary());
  return tokens;
}

std::vector<uint32_t> WordMaskOf(xgrammar::GrammarMatcher* matcher) {
  std::vector<uint32_t> mask(MaskWords(WordVocabulary().texts.size()), ~uint32_t{0});
  MaskTensor tensor(mask);
  matcher->FillNextTokenBitmask(tensor.get());
  return mask;
}

StatusOr<xgrammar::CompiledGrammar> CompiledForWords(GrammarKind kind, std::string_view text) {
  return CompileText({kind, std::string(text)}, WordVocabulary(), WordTokens());
}

TEST(GrammarPack, AGrammarThatWasReadMasksAsTheOneThatWasWritten) {
  for (const auto& [kind, text, answer] :
       {std::tuple(GrammarKind::kRegex, "[a-z]*[0-9][^x]*", "abc7 and more"),
        std::tuple(GrammarKind::kChoice, R"(["yes","no"])", "yes"),
        std::tuple(GrammarKind::kJsonSchema,
                   R"({"properties":{"a":{"type":"string","maxLength":12,"minLength":2},"b":{}}})",
                   R"({"a": "x\ny", "b": [1, "é"]})"),
        std::tuple(GrammarKind::kStructuralTag,
                   R"({"type":"structural_tag","format":{"type":"triggered_tags","triggers":["<f"],
                      "tags":[{"type":"tag","begin":"<f>","end":"</f>","content":
                      {"type":"json_schema","json_schema":{"type":"integer"}}}]}})",
                   "see <f>12</f> x")}) {
    const auto written = CompiledForWords(kind, text);
    ASSERT_TRUE(written.ok()) << written.status();
    const auto read = UnpackGrammar(PackGrammar(*written, SpaceRule::kJson), WordTokens());
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->space, SpaceRule::kJson);
    EXPECT_GT(read->bytes, 0u);
    xgrammar::GrammarMatcher first(*written);
    xgrammar::GrammarMatcher second(read->grammar);
    for (const char c : std::string_view(answer)) {
      EXPECT_EQ(WordMaskOf(&first), WordMaskOf(&second)) << text << " at " << c;
      ASSERT_TRUE(first.AcceptToken(static_cast<unsigned char>(c))) << text << " at " << c;
      ASSERT_TRUE(second.AcceptToken(static_cast<unsigned char>(c)));
    }
    EXPECT_EQ(WordMaskOf(&first), WordMaskOf(&second)) << text;
    EXPECT_TRUE(first.IsCompleted() && second.IsCompleted()) << text;
  }
}

TEST(GrammarPack, BytesThatAreNotWholeOrOfAnotherVocabularyAreNoGrammar) {
  const auto written = CompiledForWords(GrammarKind::kRegex, "[a-z]+[0-9]");
  ASSERT_TRUE(written.ok());
  const std::string packed = PackGrammar(*written);
  ASSERT_TRUE(UnpackGrammar(packed, WordTokens()));
  for (size_t size = 0; size < packed.size(); size += 1 + size / 50) {
    EXPECT_FALSE(UnpackGrammar(std::string_view(packed).substr(0, size), WordTokens())) << size;
  }
  EXPECT_FALSE(UnpackGrammar(packed + '\0', WordTokens()));
  EXPECT_FALSE(UnpackGrammar(packed, MakeTokenizerInfo(ByteVocabulary())));
}

}  // namespace
}  // namespace portico::grammar
