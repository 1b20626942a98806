// Masks of strings with minLength and maxLength: tables tell most of them (scripts/xgrammar.patch), and they must be what trying each token gives.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar_for_test.h"
#include "text/utf8.h"

namespace portico::grammar {
namespace {

// Besides single bytes, tokens that end strings in their middle, that are longer than what a string may still have, and that begin or
// end within an escape or a character. More than a thousand fit into strings and more than a thousand do not: the core has bit sets
// for such states and lists for others.
const Vocabulary& PieceVocabulary() {
  static const Vocabulary vocabulary = [] {
    const std::vector<std::string> plain{"a", "b", " ", "1", "é", "日", "😀", ",", ":"};
    const std::vector<std::string> others{
        "\"",   "\",\"", "\":\"", "\"}",  "\"]",      "\\",       "u",    "00",
        "\\n",  "\\\"",  "\\\\",  "\\u0", "\\u001f",  "\xC3",     "\xA9", "\xE6\x97",
        "\xA5", "\xED",  "\xA0",  "\xC0", "\xF0\x9F", "\x98\x80", "\n"};
    Vocabulary made = ByteVocabulary();
    std::set<std::string> known(made.texts.begin(), made.texts.end());
    std::mt19937 draw(7);
    while (made.texts.size() < 4800) {
      const bool mixed = draw() % 2 == 0;
      const size_t pieces = draw() % 16 == 0 ? 20 + draw() % 30 : 2 + draw() % 5;
      std::string text;
      for (size_t i = 0; i < pieces; ++i) {
        const auto& from = mixed && draw() % 3 == 0 ? others : plain;
        text += from[draw() % from.size()];
      }
      if (draw() % 4 == 0) text += '\x01';
      if (known.insert(text).second) made.texts.push_back(std::move(text));
    }
    return made;
  }();
  return vocabulary;
}

xgrammar::CompiledGrammar CountedGrammar(std::string_view schema) {
  static const xgrammar::TokenizerInfo tokens = MakeTokenizerInfo(PieceVocabulary());
  GrammarText text{GrammarKind::kJsonSchema, std::string(schema)};
  text.compact = true;
  const auto compiled = CompileText(text, PieceVocabulary(), tokens);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return *compiled;
}

xgrammar::GrammarMatcher MatcherFor(std::string_view schema) {
  return xgrammar::GrammarMatcher(CountedGrammar(schema));
}

std::vector<bool> MaskOf(xgrammar::GrammarMatcher* matcher) {
  const size_t tokens = PieceVocabulary().texts.size();
  std::vector<uint32_t> words(MaskWords(tokens), ~uint32_t{0});
  auto shape = static_cast<int64_t>(words.size());
  DLTensor tensor{};
  tensor.data = words.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = 1;
  tensor.dtype = {kDLInt, 32, 1};
  tensor.shape = &shape;
  matcher->FillNextTokenBitmask(&tensor);
  std::vector<bool> mask(tokens);
  for (size_t id = 0; id < tokens; ++id) mask[id] = (words[id / 32] >> (id % 32) & 1) != 0;
  return mask;
}

bool IsMarker(size_t id) { return id == kTestEnd || id == kTestMarker; }

// Tokens of which the mask says what trying them does not.
std::vector<std::string> WrongIn(const std::vector<bool>& mask,
                                 const xgrammar::GrammarMatcher& matcher) {
  std::vector<std::string> wrong;
  xgrammar::GrammarMatcher trial = matcher.Fork();
  for (size_t id = 0; id < mask.size(); ++id) {
    if (IsMarker(id)) continue;
    const bool accepted = trial.AcceptToken(static_cast<int32_t>(id));
    if (accepted != mask[id]) wrong.push_back(PieceVocabulary().texts[id]);
    if (accepted) trial = matcher.Fork();
  }
  return wrong;
}

// One of the mask's tokens, seldom one that ends a string; -1: only the end is allowed.
int32_t Drawn(const std::vector<bool>& mask, std::mt19937* draw) {
  std::vector<int32_t> allowed;
  for (size_t id = 0; id < mask.size(); ++id) {
    if (mask[id] && !IsMarker(id)) allowed.push_back(static_cast<int32_t>(id));
  }
  if (allowed.empty()) return -1;
  const auto token = [&] { return allowed[(*draw)() % allowed.size()]; };
  int32_t drawn = token();
  for (int i = 0; i < 4; ++i) {
    const std::string& text = PieceVocabulary().texts[static_cast<size_t>(drawn)];
    if (text.find('"') == std::string::npos && CountCodePoints(text) < 4) break;
    drawn = token();
  }
  return drawn;
}

bool IsBegunCharacter(std::string_view text) {
  const auto whole = [&](const char* rest) {
    return Utf8SequenceLength(std::string(text) + rest) > text.size();
  };
  return whole("\x80\x80\x80") || whole("\x90\x80\x80") || whole("\xA0\x80\x80");
}

const std::vector<std::string>& Escapes() {
  static const std::vector<std::string> escapes = [] {
    std::vector<std::string> made{"\\\"", "\\\\", "\\b", "\\f", "\\n", "\\r", "\\t"};
    for (const char high : {'0', '1'}) {
      for (const char low : std::string_view("0123456789abcdef")) {
        made.push_back(std::string("\\u00") + high + low);
      }
    }
    return made;
  }();
  return escapes;
}

struct LengthBounds {
  size_t least;
  size_t most;
};

// Whether a JSON string of so many characters can begin so.
bool CanBegin(std::string_view text, const LengthBounds& bounds) {
  if (text.empty()) return true;
  if (text[0] != '"') return false;
  text.remove_prefix(1);
  for (size_t count = 0; !text.empty();) {
    if (text[0] == '"') return text.size() == 1 && count >= bounds.least;
    if (count >= bounds.most || static_cast<unsigned char>(text[0]) < 0x20) return false;
    if (text[0] == '\\') {
      const auto fits = [&](const std::string& escape) {
        return text.starts_with(escape) || escape.starts_with(text);
      };
      const auto escape = std::find_if(Escapes().begin(), Escapes().end(), fits);
      if (escape == Escapes().end()) return false;
      ++count;
      text.remove_prefix(std::min(escape->size(), text.size()));
      continue;
    }
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) return IsBegunCharacter(text);
    ++count;
    text.remove_prefix(length);
  }
  return true;
}

// Tokens of which the mask says another thing.
std::vector<std::string> WrongIn(const std::vector<bool>& mask, const std::string& text,
                                 const LengthBounds& bounds) {
  std::vector<std::string> wrong;
  for (size_t id = 0; id < mask.size(); ++id) {
    const std::string& token = PieceVocabulary().texts[id];
    if (!IsMarker(id) && mask[id] != CanBegin(text + token, bounds)) wrong.push_back(token);
  }
  return wrong;
}

TEST(CountedMask, AStringOfLimitedLengthMayGoOnWithWhatItsRestHasRoomForAndEndBehindItsLeast) {
  std::mt19937 draw(11);
  for (const LengthBounds bounds :
       {LengthBounds{0, 1}, LengthBounds{0, 9}, LengthBounds{1, 12}, LengthBounds{3, 45},
        LengthBounds{5, 5}, LengthBounds{20, 20}, LengthBounds{40, 90000}}) {
    const std::string named = fmt::format("{} to {}", bounds.least, bounds.most);
    xgrammar::GrammarMatcher fresh = MatcherFor(fmt::format(
        R"({{"type":"string","minLength":{},"maxLength":{}}})", bounds.least, bounds.most));
    for (int walk = 0; walk < 2; ++walk) {
      fresh.Reset();
      std::string text;
      for (int step = 0; step < 16 && !fresh.IsCompleted(); ++step) {
        const std::vector<bool> mask = MaskOf(&fresh);
        EXPECT_THAT(WrongIn(mask, text, bounds), testing::IsEmpty()) << named << " " << text;
        EXPECT_THAT(WrongIn(mask, fresh), testing::IsEmpty()) << named << " " << text;
        const int32_t token = step == 0 ? '"' : Drawn(mask, &draw);
        ASSERT_GE(token, 0) << text;
        ASSERT_TRUE(fresh.AcceptToken(token)) << text;
        text += PieceVocabulary().texts[static_cast<size_t>(token)];
      }
    }
  }
}

TEST(CountedMask, MasksOfGrammarsThatCountAreWhatTryingEachTokenGives) {
  std::mt19937 draw(13);
  for (const char* const schema :
       {R"({"type":"object","properties":{"a":{"type":"string","maxLength":10},
            "b":{"type":"string","minLength":3,"maxLength":14}},"required":["a","b"],
            "additionalProperties":false})",
        R"({"anyOf":[{"type":"array","items":{"type":"string","maxLength":9}},
            {"type":"array","items":{"type":"string","maxLength":30}}]})",
        R"({"type":"object","propertyNames":{"maxLength":11},
            "additionalProperties":{"type":"string","minLength":2}})",
        R"({"type":"array","minItems":2,"items":{"type":"string","minLength":1}})",
        R"({"type":"array","items":{"anyOf":[{"type":"string","minLength":6},
            {"type":"string","maxLength":4},{"type":"string","pattern":"^a"}]}})",
        R"({"type":"object","properties":{"a":{"type":"string","minLength":2,"maxLength":3},
            "b":{"type":"string","minLength":1},"c":{"type":"string"},"d":{"type":"integer"}},
            "required":["a","b","c","d"],"additionalProperties":false})",
        R"({"type":"string","pattern":"^([ab]{1,3}[ ,:1]){20}$"})",
        R"({"type":"string","pattern":"^([^:]{1,2}[ab]){2,40}:?$"})",
        R"({"type":"string","pattern":"b1([ab]+ )*"})"}) {
    xgrammar::GrammarMatcher matcher = MatcherFor(schema);
    for (int walk = 0; walk < 3; ++walk) {
      matcher.Reset();
      std::string text;
      for (int step = 0; step < 14; ++step) {
        const std::vector<bool> mask = MaskOf(&matcher);
        EXPECT_THAT(WrongIn(mask, matcher), testing::IsEmpty()) << schema << " " << text;
        const int32_t token = Drawn(mask, &draw);
        if (token < 0) break;
        ASSERT_TRUE(matcher.AcceptToken(token)) << schema << " " << text;
        text += PieceVocabulary().texts[static_cast<size_t>(token)];
      }
    }
  }
}

// Where the member that tells them apart came behind the text, the bound of one alternative held for all.
TEST(CountedMask, AnAlternativesBoundIsItsOwn) {
  const auto alternatives = [](const std::string& one, const std::string& other) {
    const auto object = [](const std::string& bounds, char constant) {
      return R"({"type":"object","properties":{"a":{"type":"string",)" + bounds +
             R"(},"k":{"const":)" + constant +
             R"(}},"required":["a","k"],"additionalProperties":false})";
    };
    return R"({"anyOf":[)" + object(one, '1') + "," + object(other, '2') + "]}";
  };
  const std::string ten(10, 'a');
  const std::string eleven(11, 'a');
  for (const std::string& schema :
       {alternatives(R"("maxLength":10)", R"("maxLength":30)"),
        alternatives(R"("minLength":3,"maxLength":10)", R"("minLength":3)"),
        alternatives(R"("minLength":2,"maxLength":10)", R"("minLength":4,"maxLength":30)")}) {
    EXPECT_TRUE(Takes(CountedGrammar(schema), R"({"a":")" + ten + R"(","k":1})")) << schema;
    EXPECT_TRUE(Takes(CountedGrammar(schema), R"({"a":")" + ten + R"(","k":2})")) << schema;
    EXPECT_TRUE(Takes(CountedGrammar(schema), R"({"a":")" + eleven + R"(","k":2})")) << schema;
    EXPECT_FALSE(Takes(CountedGrammar(schema), R"({"a":")" + eleven + R"(","k":1})")) << schema;
  }
  const std::string least =
      alternatives(R"("minLength":2,"maxLength":10)", R"("minLength":4,"maxLength":10)");
  EXPECT_TRUE(Takes(CountedGrammar(least), R"({"a":"aaa","k":1})"));
  EXPECT_FALSE(Takes(CountedGrammar(least), R"({"a":"aaa","k":2})"));
}

// A state has bit sets only if a thousand tokens are allowed there and a thousand are not.
TEST(CountedMask, TheTestsVocabularyIsBigEnough) {
  xgrammar::GrammarMatcher matcher = MatcherFor(R"({"type":"string","maxLength":1000})");
  ASSERT_TRUE(matcher.AcceptToken('"'));
  const std::vector<bool> mask = MaskOf(&matcher);
  const auto allowed = std::count(mask.begin(), mask.end(), true);
  EXPECT_GT(allowed, 1300);
  EXPECT_LT(allowed, static_cast<int64_t>(mask.size()) - 1300);
}

}  // namespace
}  // namespace portico::grammar
