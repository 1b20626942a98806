#include "tokenizer/split/ascii_block.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/sanitized_for_test.h"
#include "tokenizer/split/byte_level_scanners.h"

namespace portico::tokenizer {
namespace {

constexpr std::string_view kAscii[] = {
    "a",   "b",   "word", "Word", "HTTP", "x",    "S",    "'",        "'s",   "'t",  "'ll", "'x",
    "''",  " ",   " ",    " ",    "  ",   "    ", "\n",   "\n",       "\n\n", "\n ", "\t",  "\t\t",
    " \t", "\t ", " \n",  "1",    "22",   "333",  "4444", "12345678", ".",    ". ",  ", ",  "(",
    ")",   "();", "\"",   "/",    "//",   "/*",   "\n/",  ";\n",      "=",    "_",   "$",   "-"};
constexpr std::string_view kOthers[] = {
    "\t",           "\r\n",         "\r",       "\x01",
    "\x7F",         "\x1C",         "\v",       "\xC3\xA9",
    "\xC3\x89",     "\xCC\x81",     "\xC5\xBF", "\xC2\xA0",
    "\xE4\xB8\xAD", "\xE3\x81\xAE", "\xD9\xA3", "\xF0\x9F\x98\x80",
    "\xE2\x80\x99", "\xE3\x80\x80", "\xC2\x85", "\xCA\xB0"};

// One part in `rare` is not plain ASCII; 0: none.
std::string RandomBlockText(std::mt19937* random, int rare) {
  std::string text;
  for (auto parts = 1 + (*random)() % 120; parts > 0; --parts) {
    bool other = rare > 0 && (*random)() % static_cast<unsigned>(rare) == 0;
    text +=
        other ? kOthers[(*random)() % std::size(kOthers)] : kAscii[(*random)() % std::size(kAscii)];
  }
  return text;
}

template <typename Scanner>
std::vector<size_t> Ends(std::string_view text) {
  Scanner scanner;
  std::vector<size_t> ends;
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    p = scanner.Next(p, end);
    ends.push_back(static_cast<size_t>(p - text.data()));
  }
  return ends;
}

template <typename Fast, typename Plain>
void Compare(const char* name) {
  std::mt19937 random(20261122);
  for (int round = 0; round < RandomRounds(10000); ++round) {
    std::string text = RandomBlockText(&random, round % 3 == 0 ? 0 : round % 3 == 1 ? 40 : 6);
    ASSERT_EQ(Ends<Fast>(text), Ends<Plain>(text)) << name << ": " << text;
  }
}

// Begins anywhere where a piece begins, as after a stretch that was copied from memory.
template <typename Fast, typename Plain>
void CompareWithJumps(const char* name) {
  std::mt19937 random(20261123);
  for (int round = 0; round < RandomRounds(3000); ++round) {
    std::string text = RandomBlockText(&random, 30);
    std::vector<size_t> all = Ends<Plain>(text);
    const char* end = text.data() + text.size();
    Fast fast;
    for (size_t piece = 0; piece + 1 < all.size();) {
      const char* q = fast.Next(text.data() + (piece == 0 ? 0 : all[piece - 1]), end);
      ASSERT_EQ(static_cast<size_t>(q - text.data()), all[piece]) << name << ": " << text;
      piece += random() % 4 == 0 ? 2 + random() % 30 : 1;
    }
  }
}

#if defined(PORTICO_HAS_ASCII_BLOCK)
using Gpt2 = BlockScanner<scan::kGpt2Rules, Gpt2Scanner>;
using Cl100k = BlockScanner<scan::kCl100kRules<3>, Cl100kScanner<3>>;
using Qwen2 = BlockScanner<scan::kCl100kRules<1>, Cl100kScanner<1>>;
using O200k = BlockScanner<scan::kO200kRules, O200kScanner>;
using DeepSeek = BlockScanner<scan::kDeepSeekRules, DeepSeekScanner>;

TEST(AsciiBlockTest, BlocksCutTextAsTheScannersDo) {
  Compare<Gpt2, Gpt2Scanner>("gpt2");
  Compare<Cl100k, Cl100kScanner<3>>("cl100k");
  Compare<Qwen2, Cl100kScanner<1>>("qwen2");
  Compare<O200k, O200kScanner>("o200k");
  Compare<DeepSeek, DeepSeekScanner>("deepseek");
}

TEST(AsciiBlockTest, TheCallerMayGoOnBehindPiecesByItself) {
  CompareWithJumps<Gpt2, Gpt2Scanner>("gpt2");
  CompareWithJumps<Cl100k, Cl100kScanner<3>>("cl100k");
  CompareWithJumps<Qwen2, Cl100kScanner<1>>("qwen2");
  CompareWithJumps<O200k, O200kScanner>("o200k");
  CompareWithJumps<DeepSeek, DeepSeekScanner>("deepseek");
}

// So that a change of the rules that leaves all to the scanners does not pass unseen.
TEST(AsciiBlockTest, PlainTextIsKnownToTheLastWord) {
  const std::string text = "for (int i = 0; i < 1234567; ++i) {\n    total += values[i] * Rate;";
  ASSERT_GE(text.size(), scan::kBlockBytes);
  EXPECT_EQ(scan::StartsOf<scan::kCl100kRules<3>>(text.data()).known, scan::kBlockBytes);
  EXPECT_EQ(std::popcount(scan::StartsOf<scan::kCl100kRules<3>>(text.data()).starts), 26);
}
#endif

}  // namespace
}  // namespace portico::tokenizer
