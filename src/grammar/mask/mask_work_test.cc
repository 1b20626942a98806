// One mask, and one token that is accepted, take a bounded amount of work, which is counted. A grammar of 34 kB took 8 s a mask, and all
// other streams of the engine waited for it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xgrammar/exception.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/compile/grammar_pack.h"
#include "grammar/grammar_for_test.h"
#include "grammar/mask/mask_tensor.h"
#include "grammar/mask/token_table.h"

namespace portico::grammar {
namespace {

constexpr int32_t kLongToken = 259;  // 40 letters

// Besides bytes all texts of two and three of some letters: enough for the core to try them at once.
const Vocabulary& LetterVocabulary() {
  static const Vocabulary vocabulary = [] {
    constexpr std::string_view kLetters = "abcdefgh";
    Vocabulary made = ByteVocabulary();
    made.texts.emplace_back(40, 'a');
    for (const char first : kLetters) {
      for (const char second : kLetters) {
        made.texts.push_back({first, second});
        for (const char third : kLetters) made.texts.push_back({first, second, third});
      }
    }
    return made;
  }();
  return vocabulary;
}

const std::shared_ptr<const TokenTable>& Letters() {
  static const auto table =
      std::make_shared<const TokenTable>(MakeTokenizerInfo(LetterVocabulary()));
  return table;
}

// Rules of which each may begin and end behind each letter: the parser's rows have states and parents of all of them.
std::string Overlapping(int rules) {
  std::string text = "root ::= (a0";
  for (int i = 1; i < rules; ++i) text += fmt::format(" | a{}", i);
  text += ")* \".\"\n";
  for (int i = 0; i < rules; ++i) {
    text += fmt::format("a{0} ::= b{0} | [a-z] a{0} \"{0}\"\n", i);
    text += fmt::format("b{0} ::= [a-z ] [a-z ]? [a-z]? | \"#{0};\"\n", i);
  }
  return text;
}

xgrammar::CompiledGrammar OfLetters(GrammarKind kind, std::string text) {
  const auto compiled = CompileText({kind, std::move(text)}, LetterVocabulary(), Letters()->tokens);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return *compiled;
}

std::shared_ptr<const CompiledGrammar> Packed(const xgrammar::CompiledGrammar& grammar) {
  auto read = CompiledGrammar::Read(PackGrammar(grammar), Letters());
  EXPECT_TRUE(read.ok()) << read.status();
  return *std::move(read);
}

const xgrammar::CompiledGrammar& Hostile() {
  static const xgrammar::CompiledGrammar grammar = OfLetters(GrammarKind::kEbnf, Overlapping(30));
  return grammar;
}

xgrammar::GrammarMatcher WithWork(const xgrammar::CompiledGrammar& grammar, int64_t max_work) {
  return {grammar, std::nullopt, false, -1, std::nullopt, max_work};
}

std::vector<uint32_t> NoMask() {
  return std::vector<uint32_t>(MaskWords(LetterVocabulary().texts.size()));
}

int64_t WorkOfMask(xgrammar::GrammarMatcher* matcher) {
  std::vector<uint32_t> mask = NoMask();
  MaskTensor tensor(mask);
  matcher->FillNextTokenBitmask(tensor.get());
  return matcher->GetWork();
}

TEST(MaskWork, AMaskThatTakesTooMuchEndsItsAnswerAndNoOther) {
  xgrammar::GrammarMatcher free(Hostile());
  const int64_t most = WorkOfMask(&free) / 4;
  Matcher hostile(Packed(Hostile()), most);
  Matcher other(Packed(OfLetters(GrammarKind::kRegex, "[a-h]*")), most);
  std::vector<uint32_t> mask = NoMask();
  EXPECT_FALSE(hostile.FillMask(mask));
  EXPECT_TRUE(hostile.too_slow());
  EXPECT_FALSE(hostile.Accept('a'));
  EXPECT_FALSE(hostile.FillMask(mask));
  EXPECT_FALSE(hostile.finished());
  EXPECT_FALSE(hostile.complete());
  EXPECT_TRUE(other.FillMask(mask));
  EXPECT_TRUE(other.Accept('a'));
  EXPECT_FALSE(other.too_slow());
}

TEST(MaskWork, ATokenThatTakesTooMuchToAcceptEndsItsAnswer) {
  xgrammar::GrammarMatcher free(Hostile());
  ASSERT_TRUE(free.AcceptToken(kLongToken));
  Matcher hostile(Packed(Hostile()), free.GetWork() / 4);
  EXPECT_TRUE(hostile.Accept('a'));
  EXPECT_FALSE(hostile.Accept('!'));
  EXPECT_FALSE(hostile.too_slow()) << "it is not allowed, and that is all";
  EXPECT_FALSE(hostile.Accept(kLongToken));
  EXPECT_TRUE(hostile.too_slow());
  EXPECT_FALSE(hostile.Accept('a'));
}

TEST(MaskWork, AGrammarThatTakesTooMuchToBeginEndsItsAnswer) {
  Matcher hostile(Packed(Hostile()), 100);
  EXPECT_FALSE(hostile.Accept('a'));
  EXPECT_TRUE(hostile.too_slow());
}

// What others wait for it is counted, not timed.
TEST(MaskWork, AMaskEndsSoonBehindItsBound) {
  xgrammar::GrammarMatcher free(Hostile());
  const int64_t whole = WorkOfMask(&free);
  for (const int64_t most : {whole, whole / 2, whole / 8}) {
    xgrammar::GrammarMatcher bounded = WithWork(Hostile(), most);
    if (most == whole) {
      EXPECT_EQ(WorkOfMask(&bounded), whole);
      continue;
    }
    EXPECT_THROW(WorkOfMask(&bounded), xgrammar::TooMuchWorkError);
    EXPECT_GT(bounded.GetWork(), most);
    EXPECT_LT(bounded.GetWork(), most + 4096);
  }
}

// The core writes no description of such rows, by which it finds equal ones.
TEST(MaskWork, AMaskOfManyStatesHasWhatIsTakenOneByOne) {
  xgrammar::GrammarMatcher matcher(Hostile());
  ASSERT_TRUE(matcher.AcceptToken('a'));
  std::vector<uint32_t> mask = NoMask();
  MaskTensor tensor(mask);
  matcher.FillNextTokenBitmask(tensor.get());
  const std::vector<std::string>& texts = LetterVocabulary().texts;
  for (size_t id = 0; id < texts.size(); ++id) {
    if (id == kTestEnd || id == kTestMarker) continue;
    xgrammar::GrammarMatcher trial = matcher.Fork();
    EXPECT_EQ((mask[id / 32] >> (id % 32) & 1) != 0, trial.AcceptToken(static_cast<int32_t>(id)))
        << texts[id];
  }
}

TEST(MaskWork, UsualAnswersTakeAThousandthOfWhatTheyMay) {
  const auto walk = [](GrammarText text, std::string_view answer) {
    const auto compiled = CompileText(text, LetterVocabulary(), Letters()->tokens);
    ASSERT_TRUE(compiled.ok()) << compiled.status();
    xgrammar::GrammarMatcher matcher(*compiled);
    int64_t most = 0;
    for (const char c : answer) {
      most = std::max(most, WorkOfMask(&matcher));
      ASSERT_TRUE(matcher.AcceptToken(static_cast<uint8_t>(c))) << answer << ": " << c;
      most = std::max(most, matcher.GetWork());
    }
    EXPECT_TRUE(matcher.IsCompleted()) << answer;
    EXPECT_LT(most, kMaxMaskWork / 1000) << text.text;
  };
  walk({GrammarKind::kJsonSchema,
        R"({"type":"object","properties":{"a":{"type":"string","maxLength":40},
            "b":{"type":"array","items":{"enum":["red","green",7]}}},"required":["a","b"]})"},
       R"({"a": "abc abc", "b": ["red", 7]})");
  walk({GrammarKind::kJsonObject, ""}, R"({"a": [1, 2.5, null, {"b": "cc"}], "d": true})");
  walk({GrammarKind::kRegex, ".{0,40}foo.{0,40}"}, "abc foo abc");
  walk({GrammarKind::kRegex, "([a-h]{1,9} ){3}"}, "abc ab a ");
  walk({GrammarKind::kEbnf, Overlapping(1)}, "abc0.");
}

}  // namespace
}  // namespace portico::grammar
