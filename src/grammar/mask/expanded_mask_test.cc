// What the core counts (lengths of strings, repetitions of groups), against automata that have a state for each count.
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
#include <utility>
#include <vector>

#include "grammar/expanded_for_test.h"
#include "grammar/grammar_for_test.h"
#include "grammar/mask/mask_tensor.h"

namespace portico::grammar {
namespace {

using Part = Expanded::Part;

// Single bytes, and pieces of what the tests' grammars take: more than a thousand of each kind, so that the core has bit sets.
const Vocabulary& ScrapVocabulary() {
  static const Vocabulary vocabulary = [] {
    const std::vector<std::string> plain{"a", "b", "ab", "abab", "1", " ", "é", "😀", "a1", "bb"};
    const std::vector<std::string> others{
        "\"",  "\",\"", "\",\"k\":1", "\",\"k\":2", "\"}",  "\\",   "n",       "u00",
        "\\n", "\\\"",  "\\u001f",    "1f",         "\xC3", "\xA9", "\x98\x80"};
    // Half of a surrogate pair, what is beyond the last character, and overlong forms.
    const std::vector<std::string> invalid{"\xED\xA0\x80",     "\xED\x9F\xBF",     "\xE0\x80\x80",
                                           "\xF4\x90\x80\x80", "\xF0\x80\x80\x80", "\xC0\x80"};
    Vocabulary made = ByteVocabulary();
    std::set<std::string> known(made.texts.begin(), made.texts.end());
    std::mt19937 draw(7);
    for (const std::string& bytes : invalid) {
      for (const char* const behind : {"", "a", "b\""}) made.texts.push_back(bytes + behind);
    }
    known.insert(made.texts.begin(), made.texts.end());
    while (made.texts.size() < 3400) {
      const bool mixed = draw() % 2 == 0;
      std::string text;
      for (size_t pieces = 2 + draw() % 6; pieces > 0; --pieces) {
        const auto& from = mixed && draw() % 2 == 0 ? others : plain;
        text += from[draw() % from.size()];
      }
      if (known.insert(text).second) made.texts.push_back(std::move(text));
    }
    return made;
  }();
  return vocabulary;
}

struct Walked {
  GrammarKind kind;
  std::string text;
  Part same;
};

Walked Schema(std::string text, Part same) {
  return {GrammarKind::kJsonSchema, std::move(text), std::move(same)};
}

// A regular expression, and a pattern of a string.
std::vector<Walked> Both(const std::string& regex, const Part& same) {
  return {{GrammarKind::kRegex, regex, same},
          Schema(R"({"type":"string","pattern":"^)" + regex + "$\"}",
                 AllOf({Literal("\""), same, Literal("\"")}))};
}

xgrammar::CompiledGrammar ScrapGrammar(const Walked& walked) {
  static const xgrammar::TokenizerInfo tokens = MakeTokenizerInfo(ScrapVocabulary());
  GrammarText text{walked.kind, walked.text};
  text.compact = true;
  const auto compiled = CompileText(text, ScrapVocabulary(), tokens);
  EXPECT_TRUE(compiled.ok()) << walked.text << compiled.status();
  return *compiled;
}

// Without the markers, in order: what tokens begin with alike is followed once.
const std::vector<int32_t>& SortedScraps() {
  static const std::vector<int32_t> sorted = [] {
    const std::vector<std::string>& texts = ScrapVocabulary().texts;
    std::vector<int32_t> made;
    for (int32_t id = 0; id < static_cast<int32_t>(texts.size()); ++id) {
      if (id != kTestEnd && id != kTestMarker) made.push_back(id);
    }
    std::sort(made.begin(), made.end(), [&](int32_t a, int32_t b) {
      return texts[static_cast<size_t>(a)] < texts[static_cast<size_t>(b)];
    });
    return made;
  }();
  return sorted;
}

std::vector<bool> AllowedBehind(Expanded* grammar, Expanded::States states) {
  const std::vector<std::string>& texts = ScrapVocabulary().texts;
  std::vector<bool> allowed(texts.size());
  std::vector<Expanded::States> way{states};
  std::string_view before;
  for (const int32_t id : SortedScraps()) {
    const std::string_view text = texts[static_cast<size_t>(id)];
    const auto common = static_cast<size_t>(
        std::mismatch(before.begin(), before.end(), text.begin(), text.end()).second -
        text.begin());
    if (way.size() > common + 1) way.resize(common + 1);
    while (way.size() <= text.size() && way.back() != Expanded::kNone) {
      way.push_back(grammar->Behind(way.back(), text.substr(way.size() - 1, 1)));
    }
    allowed[static_cast<size_t>(id)] =
        way.size() == text.size() + 1 && way.back() != Expanded::kNone;
    before = text;
  }
  return allowed;
}

void Walk(const Walked& walked, int walks, int steps) {
  Expanded same(walked.same);
  xgrammar::GrammarMatcher matcher(ScrapGrammar(walked));
  const std::vector<std::string>& texts = ScrapVocabulary().texts;
  std::vector<uint32_t> mask(MaskWords(texts.size()));
  MaskTensor tensor(mask);
  std::mt19937 draw(17);
  for (int walk = 0; walk < walks; ++walk) {
    matcher.Reset();
    Expanded::States states = same.start();
    std::string text;
    for (int step = 0; step < steps; ++step) {
      ASSERT_EQ(matcher.IsCompleted(), same.IsEnd(states)) << walked.text << " " << text;
      std::fill(mask.begin(), mask.end(), ~uint32_t{0});
      matcher.FillNextTokenBitmask(tensor.get());
      const std::vector<bool> allowed = AllowedBehind(&same, states);
      std::vector<std::string> wrong;
      std::vector<int32_t> all;
      std::vector<int32_t> brief;
      for (size_t id = 0; id < texts.size(); ++id) {
        if (id == kTestEnd || id == kTestMarker) continue;
        if (allowed[id] != ((mask[id / 32] >> (id % 32) & 1) != 0)) wrong.push_back(texts[id]);
        if (!allowed[id]) continue;
        all.push_back(static_cast<int32_t>(id));
        if (texts[id].find('"') == std::string::npos) brief.push_back(static_cast<int32_t>(id));
      }
      ASSERT_THAT(wrong, testing::IsEmpty()) << walked.text << " " << text;
      if (all.empty()) break;
      const auto& from = brief.empty() || draw() % 6 == 0 ? all : brief;
      const int32_t token = from[draw() % from.size()];
      ASSERT_TRUE(matcher.AcceptToken(token)) << walked.text << " " << text;
      states = same.Behind(states, texts[static_cast<size_t>(token)]);
      text += texts[static_cast<size_t>(token)];
    }
  }
}

std::string LengthsOf(int least, int most) {
  return R"({"type":"string","minLength":)" + std::to_string(least) +
         (most < 0 ? "" : R"(,"maxLength":)" + std::to_string(most)) + "}";
}

// A member that tells alternatives apart behind the text whose bounds are their own.
std::string Alternative(const std::string& text, int constant) {
  return R"({"type":"object","properties":{"a":)" + text + R"(,"k":{"const":)" +
         std::to_string(constant) + R"(}},"required":["a","k"],"additionalProperties":false})";
}

TEST(ExpandedMask, LengthsAreWhatCountingCharactersGives) {
  for (const auto& [least, most] : std::vector<std::pair<int, int>>{
           {0, 1}, {1, 1}, {0, 7}, {2, 9}, {6, 6}, {4, -1}, {1, -1}, {30, 33}, {3, 60}}) {
    Walk(Schema(LengthsOf(least, most), JsonText(least, most)), 3, 12);
  }
  Walk(Schema(R"({"type":"array","minItems":3,"maxItems":3,"items":)" + LengthsOf(2, 5) + "}",
              AllOf({Literal("["), JsonText(2, 5), Literal(","), JsonText(2, 5), Literal(","),
                     JsonText(2, 5), Literal("]")})),
       3, 16);
}

TEST(ExpandedMask, AlternativesKeepTheirOwnLengths) {
  struct Bounds {
    int least, most;
  };
  for (const auto& [one, other] : std::vector<std::pair<Bounds, Bounds>>{{{0, 6}, {0, 16}},
                                                                         {{3, 6}, {3, -1}},
                                                                         {{2, 6}, {4, 16}},
                                                                         {{2, 6}, {4, 6}},
                                                                         {{5, 5}, {6, 6}},
                                                                         {{7, -1}, {0, 4}}}) {
    const auto object = [](const Bounds& bounds, std::string_view rest) {
      return AllOf({Literal("{\"a\":"), JsonText(bounds.least, bounds.most), Literal(rest)});
    };
    Walk(Schema(R"({"anyOf":[)" + Alternative(LengthsOf(one.least, one.most), 1) + "," +
                    Alternative(LengthsOf(other.least, other.most), 2) + "]}",
                OneOf({object(one, ",\"k\":1}"), object(other, ",\"k\":2}")})),
         6, 16);
  }
}

// The core has up to sixteen repetitions of an automaton as states, and counts others.
TEST(ExpandedMask, GroupsRepeatAsOftenAsTheirCountsSay) {
  const Part ab = Literal("ab");
  const Part class_ab = OneOf({Literal("a"), Literal("b")});
  const Part word = AllOf({Times(class_ab, 1, 3), OneOf({Literal(" "), Literal("1")})});
  // a to c, and é to U+FFFF.
  std::vector<Part> letters = LongChars();
  letters = {letters.begin() + 1, letters.begin() + 5};
  letters.push_back(Bytes({{'a', 'c'}}));
  letters.push_back(Bytes({{0xC3, 0xC3}, {0xA9, 0xBF}}));
  letters.push_back(Bytes({{0xC4, 0xDF}, {0x80, 0xBF}}));
  const Part letter = OneOf(letters);
  const std::vector<std::pair<std::string, Part>> cases{
      {"(ab){2,5}", Times(ab, 2, 5)},
      {"(ab){2,5}(ab){1,30}", AllOf({Times(ab, 2, 5), Times(ab, 1, 30)})},
      {"(ab){20}(ab){17,30}1", AllOf({Times(ab, 20, 20), Times(ab, 17, 30), Literal("1")})},
      {"([ab]{1,3}[ 1]){18,40}", Times(word, 18, 40)},
      {"([ab]{1,3}[ 1]){3}", Times(word, 3, 3)},
      {"([ab]{1,9} ){12}", Times(AllOf({Times(class_ab, 1, 9), Literal(" ")}), 12, 12)},
      {"( [ab]{1,30}){0,4}1",
       AllOf({Times(AllOf({Literal(" "), Times(class_ab, 1, 30)}), 0, 4), Literal("1")})},
      {"(([ab]{1,3}[ 1]){2}1){0,18}", Times(AllOf({Times(word, 2, 2), Literal("1")}), 0, 18)},
      {"(([ab]1){17,20} ){17,18}",
       Times(AllOf({Times(AllOf({class_ab, Literal("1")}), 17, 20), Literal(" ")}), 17, 18)},
      {"(é[ab]?){17,}", Times(AllOf({Literal("é"), Times(class_ab, 0, 1)}), 17, -1)},
      {"(a|bb|😀)*1",
       AllOf({Times(OneOf({Literal("a"), Literal("bb"), Literal("😀")}), 0, -1), Literal("1")})},
      {"([a-cé-\uffff]{1,2}b){2,40}", Times(AllOf({Times(letter, 1, 2), Literal("b")}), 2, 40)},
      {"((ab){20} |(ab){24}1)", OneOf({AllOf({Times(ab, 20, 20), Literal(" ")}),
                                       AllOf({Times(ab, 24, 24), Literal("1")})})}};
  for (const auto& [regex, same] : cases) {
    for (const Walked& walked : Both(regex, same)) Walk(walked, 2, 14);
  }
}

// Each of these ASCII characters.
Part Ascii(std::string_view chars) {
  std::vector<Part> ways;
  for (const char c : chars) ways.push_back(Bytes({{c, c}}));
  return OneOf(std::move(ways));
}

// The characters of a JSON string, as a negated class has them, but for one of ASCII.
Part JsonCharBut(char left_out) {
  std::vector<Part> chars = LongChars();
  for (int c = 0x20; c < 0x80; ++c) {
    if (c != '"' && c != '\\' && c != left_out) chars.push_back(Bytes({{c, c}}));
  }
  for (const char* const escape : {"\\\"", "\\\\", "\\b", "\\f", "\\r", "\\t"}) {
    chars.push_back(Literal(escape));
  }
  if (left_out != '\n') chars.push_back(Literal("\\n"));
  chars.push_back(AllOf({Literal("\\u000"), Ascii("01234567bef")}));
  chars.push_back(AllOf({Literal("\\u001"), Ascii("0123456789abcdef")}));
  return OneOf(std::move(chars));
}

// They cost a fifth of a second a mask, and more with large vocabularies.
TEST(ExpandedMask, CharactersRepeatAsOftenAsTheirCountsSay) {
  const Part ab = Ascii("ab");
  const Part abe = OneOf({Ascii("ab"), Literal("é")});
  const std::vector<std::pair<std::string, Part>> cases{
      {"[ab]{1,20}", Times(ab, 1, 20)},
      {"[ab]{17}", Times(ab, 17, 17)},
      {"1[ab1 ]{3,40}", AllOf({Literal("1"), Times(Ascii("ab1 "), 3, 40)})},
      {"[ab]{0,18}1", AllOf({Times(ab, 0, 18), Literal("1")})},
      {"(?:a|[bé]){20,}1?", AllOf({Times(abe, 20, -1), Times(Literal("1"), 0, 1)})},
      {"[abé]{2,20}1[ 1]{0,18}",
       AllOf({Times(abe, 2, 20), Literal("1"), Times(Ascii(" 1"), 0, 18)})},
      {"[ab]{6,140}b1", AllOf({Times(ab, 6, 140), Literal("b1")})},
      {"([ab]{1,80}1){1,3}", Times(AllOf({Times(ab, 1, 80), Literal("1")}), 1, 3)},
      {"([ab]{1,20}1|[ab]{4,30} )",
       OneOf({AllOf({Times(ab, 1, 20), Literal("1")}), AllOf({Times(ab, 4, 30), Literal(" ")})})},
      {"( [ab]{2,17})?1[ab]{17,18}", AllOf({Times(AllOf({Literal(" "), Times(ab, 2, 17)}), 0, 1),
                                            Literal("1"), Times(ab, 17, 18)})},
      {"[ab]{0,17}[b1]{0,17}", AllOf({Times(ab, 0, 17), Times(Ascii("b1"), 0, 17)})},
      {"[ab]{3,60}[b1]{2,70}a", AllOf({Times(ab, 3, 60), Times(Ascii("b1"), 2, 70), Literal("a")})},
      {"(?:a|[bé]){2,20}(?:[b1]|é){3,30}",
       AllOf({Times(abe, 2, 20), Times(OneOf({Ascii("b1"), Literal("é")}), 3, 30)})}};
  for (const auto& [regex, same] : cases) {
    for (const Walked& walked : Both(regex, same)) Walk(walked, 2, 12);
  }
}

TEST(ExpandedMask, AnEscapeIsOneCharacterOfAStringAndTwoOfPlainText) {
  const auto quoted = [](Part inside) {
    return AllOf({Literal("\""), std::move(inside), Literal("\"")});
  };
  Walk(Schema(R"({"type":"string","pattern":"^[^\\n]{1,20}$"})",
              quoted(Times(JsonCharBut('\n'), 1, 20))),
       3, 14);
  Walk(Schema(R"({"type":"string","pattern":"^[^b]{3,19}b\\n[^a]{0,2}$"})",
              quoted(AllOf({Times(JsonCharBut('b'), 3, 19), Literal("b\\n"),
                            Times(JsonCharBut('a'), 0, 2)}))),
       3, 14);
  Walk(Schema(
           R"({"type":"string","pattern":"^[ab\\\\]{2,18}\\\"1$"})",
           quoted(AllOf({Times(OneOf({Ascii("ab"), Literal("\\\\")}), 2, 18), Literal("\\\"1")}))),
       3, 14);
  Walk({GrammarKind::kRegex, R"([a\\]{2,18}n)", AllOf({Times(Ascii("a\\"), 2, 18), Literal("n")})},
       3, 14);
  Walk({GrammarKind::kRegex, R"(\\[ab]{17,19}(\\|1))",
        AllOf({Literal("\\"), Times(Ascii("ab"), 17, 19), Ascii("\\1")})},
       3, 14);
}

// What follows a piece may be its own characters, and it may begin anywhere: a second a mask, of a large vocabulary.
TEST(ExpandedMask, PatternsWithoutAnchorsMatchAnywhere) {
  const auto walk = [](const std::string& pattern, const Part& inside) {
    Walk(Schema(R"({"type":"string","pattern":")" + pattern + "\"}",
                AllOf({Literal("\""), inside, Literal("\"")})),
         2, 10);
  };
  const Part any = Times(AnyChar(), 0, -1);
  const Part but_lines = JsonCharBut('\n');
  const Part ab = Ascii("ab");
  walk("[^\\n]{3}", AllOf({any, Times(but_lines, 3, 3), any}));
  walk("[^\\n]{5,}", AllOf({any, Times(but_lines, 5, 5), any}));
  walk("1[^\\n]{2,40}", AllOf({any, Literal("1"), Times(but_lines, 2, 2), any}));
  walk("^1[^\\n]{0,40}", AllOf({Literal("1"), any}));
  walk("^[^\\n]{1,50}", AllOf({but_lines, any}));
  walk("[ab]{2}-[ab]{3}$", AllOf({any, Times(ab, 2, 2), Literal("-"), Times(ab, 3, 3)}));
  walk("^[ab]{0,20}[ab]{17,20}$", Times(ab, 17, 40));
  walk("[^\\n]{20,}", AllOf({any, Times(but_lines, 20, 20), any}));
  walk("[ab]{4,}", AllOf({any, Times(ab, 4, 4), any}));
  walk("(?:[a1]|b){5,9}$", AllOf({any, Times(Ascii("ab1"), 5, 5)}));
  walk("a[ab1]{4,6}", AllOf({any, Literal("a"), Times(Ascii("ab1"), 4, 4), any}));
  walk("a[ab1]{5,}$", AllOf({any, Literal("a"), Times(Ascii("ab1"), 5, -1)}));
  walk("a[^\\n]{12,20}b", AllOf({any, Literal("a"), Times(but_lines, 12, 20), Literal("b"), any}));
  walk("ab[^\\n]{18,}1[ab]*",
       AllOf({any, Literal("ab"), Times(but_lines, 18, -1), Literal("1"), any}));
  walk("[ab]{2}[^\\n]{30}$", AllOf({any, Times(ab, 2, 2), Times(but_lines, 30, 30)}));
  walk("^1[ab]{9,}", AllOf({Literal("1"), Times(ab, 9, 9), any}));
  walk("^[^\\n]+[^\\n]{0,9}[^\\n]{3,9}$", Times(but_lines, 4, -1));
  walk("^[ab]{2}|1{20,30}",
       OneOf({AllOf({Times(ab, 2, 2), any}), AllOf({any, Times(Literal("1"), 20, 20), any})}));
}

// Most of a vocabulary is tried at once where one piece may end and the next may begin at any character: up to 0.1 s a mask.
TEST(ExpandedMask, PiecesThatMayFollowEachOtherAnywhereKeepTheirCounts) {
  const auto walk = [](const std::string& fields, const Part& inside) {
    Walk(Schema(R"({"type":"string",)" + fields + "}",
                AllOf({Literal("\""), inside, Literal("\"")})),
         2, 12);
  };
  const Part any = JsonCharBut('\n');
  const Part ab = Ascii("ab");
  walk(R"("pattern":"^[^\\n]{20}a[^\\n]{20}b$")",
       AllOf({Times(any, 20, 20), Literal("a"), Times(any, 20, 20), Literal("b")}));
  walk(R"("pattern":"^[^\\n]{20,}","maxLength":31)",
       AllOf({Times(any, 20, 20), Times(AnyChar(), 0, 11)}));
  walk(R"("pattern":"^[ab1 ]{1,60}[1é]?[ab ]{0,60}$")",
       AllOf({Times(Ascii("ab1 "), 1, 60), Times(OneOf({Literal("1"), Literal("é")}), 0, 1),
              Times(Ascii("ab "), 0, 60)}));
  walk(R"("pattern":"^(?:[^\\n]{1,20} [ab]{18,40}){1,3}$")",
       Times(AllOf({Times(any, 1, 20), Literal(" "), Times(ab, 18, 40)}), 1, 3));
  Walk({GrammarKind::kRegex, R"(([ab1]{9,30}[b1]{17,20}|[ab1 ]{18,25}é)+)",
        Times(OneOf({AllOf({Times(Ascii("ab1"), 9, 30), Times(Ascii("b1"), 17, 20)}),
                     AllOf({Times(Ascii("ab1 "), 18, 25), Literal("é")})}),
              1, -1)},
       2, 12);
}

TEST(ExpandedMask, CountedCharactersInTagsEndWhereTheTagGoesOn) {
  const auto format = [](const std::string& of) {
    return R"({"type":"structural_tag","format":)" + of + "}";
  };
  const Part ab = Ascii("ab");
  Walk({GrammarKind::kStructuralTag, format(R"({"type":"tag","begin":"1","end":" a1",
                   "content":{"type":"regex","pattern":"[ab]{2,20}"}})"),
        AllOf({Literal("1"), Times(ab, 2, 20), Literal(" a1")})},
       3, 12);
  Walk({GrammarKind::kStructuralTag,
        format(R"({"type":"sequence","elements":[{"type":"regex","pattern":"[ab]{2,20}"},
                   {"type":"const_string","value":"1"},{"type":"regex","pattern":"[a ]{0,17}"},
                   {"type":"regex","pattern":"[1b]{0,200}"}]})"),
        AllOf({Times(ab, 2, 20), Literal("1"), Times(Ascii("a "), 0, 17),
               Times(Ascii("1b"), 0, 200)})},
       3, 12);
}

TEST(ExpandedMask, APatternKeepsTheLengthsBesideIt) {
  const auto schema = [](const std::string& pattern, int least, int most, const Part& same) {
    return Schema(fmt::format(R"({{"type":"string","pattern":"{}","minLength":{},"maxLength":{}}})",
                              pattern, least, most),
                  AllOf({Literal("\""), same, Literal("\"")}));
  };
  const Part ab = Ascii("ab");
  Walk(schema("^[ab]+$", 3, 20, Times(ab, 3, 20)), 3, 12);
  Walk(schema("^1[ab]*é$", 4, 24, AllOf({Literal("1"), Times(ab, 2, 22), Literal("é")})), 3, 12);
  Walk(schema("^(ab)*1$", 4, 9, AllOf({Times(Literal("ab"), 2, 4), Literal("1")})), 3, 12);
  Walk(schema("^([ab]{2,30}| 1)$", 0, 18, OneOf({Times(ab, 2, 18), Literal(" 1")})), 3, 12);
}

}  // namespace
}  // namespace portico::grammar
