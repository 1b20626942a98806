// A mask has the tokens that are taken one by one, and no others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xgrammar/xgrammar.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar_for_test.h"
#include "grammar/mask/mask_tensor.h"

namespace portico::grammar {
namespace {

using testing::ElementsAreArray;

// Tokens that have the one before them, in sorted order, in the middle or at the end: real vocabularies have such ones.
const Vocabulary& NestedVocabulary() {
  static const Vocabulary vocabulary = [] {
    Vocabulary made = ByteVocabulary();
    for (const char* text :
         {"))))\n", ")))))\n", "\r\n", "\r\r\n", "luk", "luluk", "----\n", "------\n"}) {
      made.texts.emplace_back(text);
    }
    return made;
  }();
  return vocabulary;
}

bool HasBit(const std::vector<uint32_t>& mask, size_t token) {
  return (mask[token / 32] >> (token % 32) & 1) != 0;
}

// Where the first was rejected at its last byte, the second one was left out.
TEST(TokenMaskTest, ATokenThatHasTheOneBeforeItInItsMiddleIsNotRejectedWithIt) {
  const Vocabulary& vocabulary = NestedVocabulary();
  const xgrammar::TokenizerInfo tokens = MakeTokenizerInfo(vocabulary);
  for (const char* regex :
       {R"([)]{5}\n)", R"(\r\r\n)", "lul[a-z]k", R"([-]{5,9}\n)", R"([)]*[^)\n]x|[)]{5}\n)"}) {
    const auto grammar = CompileText({GrammarKind::kRegex, regex}, vocabulary, tokens);
    ASSERT_TRUE(grammar.ok()) << grammar.status();
    std::vector<uint32_t> mask(MaskWords(vocabulary.texts.size()), ~uint32_t{0});
    MaskTensor tensor(mask);
    xgrammar::GrammarMatcher matcher(*grammar);
    matcher.FillNextTokenBitmask(tensor.get());
    std::vector<std::string> masked;
    std::vector<std::string> taken;
    for (size_t token = 0; token < vocabulary.texts.size(); ++token) {
      if (HasBit(mask, token)) masked.push_back(vocabulary.texts[token]);
      xgrammar::GrammarMatcher alone(*grammar);
      if (alone.AcceptToken(static_cast<int32_t>(token))) taken.push_back(vocabulary.texts[token]);
    }
    EXPECT_THAT(masked, ElementsAreArray(taken)) << regex;
  }
}

}  // namespace
}  // namespace portico::grammar
