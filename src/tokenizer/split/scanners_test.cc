#include "tokenizer/split/scanners.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/sanitized_for_test.h"
#include "text/utf8.h"
#include "tokenizer/regex/regex.h"

namespace portico::tokenizer {
namespace {

struct Case {
  const char* name;
  const char* pattern;
};

const Case kCases[] = {
    {"gpt2", R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"},
    {"cl100k",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"o200k",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"numbers", R"(\p{N}{1,3})"},
    {"cjk", "[一-龥぀-ゟ゠-ヿ]+"},
    {"deepseek",
     "[!\"#$%&'()*+,\\-./"
     ":;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|"
     " ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"},
};

// Characters that the patterns treat differently, and a few of every width.
std::string RandomText(std::mt19937* random) {
  static const std::vector<std::string> kParts = {"a",
                                                  "B",
                                                  "s",
                                                  "S",
                                                  "l",
                                                  "L",
                                                  "r",
                                                  "e",
                                                  "'",
                                                  " ",
                                                  "  ",
                                                  "\n",
                                                  "\r\n",
                                                  "\t",
                                                  "1",
                                                  "22",
                                                  "٣",
                                                  "/",
                                                  ".",
                                                  ",",
                                                  "!",
                                                  "中",
                                                  "の",
                                                  "゛",
                                                  "ー",
                                                  "é",
                                                  "É",
                                                  "ǅ",
                                                  "ʰ",
                                                  "ª",
                                                  "\u0301",
                                                  "\u093F",
                                                  "क",
                                                  "\u200D",
                                                  "\u00A0",
                                                  "\u3000",
                                                  "😀",
                                                  "ſ",
                                                  "K",
                                                  "\u0085",
                                                  "½",
                                                  "Ⅷ",
                                                  std::string("\0x", 2),
                                                  "_",
                                                  "$",
                                                  "€",
                                                  "′",
                                                  "한",
                                                  "\uE000"};
  std::uniform_int_distribution<size_t> pick(0, kParts.size() - 1);
  std::uniform_int_distribution<int> length(1, 14);
  std::string text;
  for (int i = length(*random); i > 0; --i) text += kParts[pick(*random)];
  return text;
}

std::string Describe(const std::vector<Match>& matches) {
  std::string out;
  for (const Match& m : matches) {
    out += std::to_string(m.begin) + "-" + std::to_string(m.end) + (m.is_match ? " " : "? ");
  }
  return out;
}

TEST(ScannersTest, EachScannerCutsRandomTextAsItsPatternDoes) {
  std::mt19937 random(20261121);
  for (const Case& c : kCases) {
    KnownPattern known = RecognizePattern(c.pattern, /*fancy=*/false);
    ASSERT_NE(known, KnownPattern::kNone) << c.name;
    auto regex = Regex::Compile(c.pattern);
    ASSERT_TRUE(regex.ok()) << regex.status();
    for (int i = 0; i < RandomRounds(20000); ++i) {
      std::string text = RandomText(&random);
      std::vector<Match> scanned;
      ScanMatches(known, text, &scanned);
      ASSERT_EQ(Describe(scanned), Describe(*(*regex)->FindMatches(text)))
          << c.name << ": " << text;
    }
  }
}

TEST(ScannersTest, EachScannerKnowsTheClassOfEveryCharacter) {
  for (const Case& c : kCases) {
    KnownPattern known = RecognizePattern(c.pattern, /*fancy=*/false);
    auto regex = Regex::Compile(c.pattern);
    ASSERT_TRUE(regex.ok());
    for (uint32_t point = 1; point < 0x110000;
         point += point < (kSanitized ? 0x400u : 0x3000u) ? 1 : 17) {
      if (point >= 0xD800 && point < 0xE000) continue;
      std::string text = "a";
      AppendUtf8(point, &text);
      text += "1 ";
      AppendUtf8(point, &text);
      std::vector<Match> scanned;
      ScanMatches(known, text, &scanned);
      ASSERT_EQ(Describe(scanned), Describe(*(*regex)->FindMatches(text)))
          << c.name << " " << point;
    }
  }
}

}  // namespace
}  // namespace portico::tokenizer
