// Masks of strings with maxLength: tables tell most of them (scripts/xgrammar.patch), and they must be what trying each token gives.
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

xgrammar::GrammarMatcher MatcherFor(std::string_view schema) {
  static const xgrammar::TokenizerInfo tokens = MakeTokenizerInfo(PieceVocabulary());
  GrammarText text{GrammarKind::kJsonSchema, std::string(schema)};
  text.compact = true;
  const auto compiled = CompileText(text, PieceVocabulary(), tokens);
  EXPECT_TRUE(compiled.ok()) << compiled.status();
  return xgrammar::GrammarMatcher(*compiled);
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

// Whether a JSON string can begin so that has no room for a character behind `most` code points, as it is written.
bool CanBegin(std::string_view text, size_t most) {
  if (text.empty()) return true;
  if (text[0] != '"') return false;
  text.remove_prefix(1);
  for (size_t count = 0; !text.empty();) {
    if (text[0] == '"') return text.size() == 1;
    if (count >= most || static_cast<unsigned char>(text[0]) < 0x20) return false;
    if (text[0] == '\\') {
      const auto fits = [&](const std::string& escape) {
        return text.starts_with(escape) || escape.starts_with(text);
      };
      const auto escape = std::find_if(Escapes().begin(), Escapes().end(), fits);
      if (escape == Escapes().end()) return false;
      count += escape->size();
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
                                 size_t most) {
  std::vector<std::string> wrong;
  for (size_t id = 0; id < mask.size(); ++id) {
    const std::string& token = PieceVocabulary().texts[id];
    if (!IsMarker(id) && mask[id] != CanBegin(text + token, most)) wrong.push_back(token);
  }
  return wrong;
}

TEST(CountedMask, AStringOfLimitedLengthMayGoOnWithWhatItsRestHasRoomFor) {
  std::mt19937 draw(11);
  for (const size_t most : {size_t{9}, size_t{12}, size_t{45}}) {
    xgrammar::GrammarMatcher fresh =
        MatcherFor(R"({"type":"string","maxLength":)" + std::to_string(most) + "}");
    for (int walk = 0; walk < 3; ++walk) {
      fresh.Reset();
      std::string text;
      for (int step = 0; step < 16 && !fresh.IsCompleted(); ++step) {
        const std::vector<bool> mask = MaskOf(&fresh);
        EXPECT_THAT(WrongIn(mask, text, most), testing::IsEmpty()) << most << " " << text;
        EXPECT_THAT(WrongIn(mask, fresh), testing::IsEmpty()) << most << " " << text;
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
            "additionalProperties":{"type":"string","minLength":2}})"}) {
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
