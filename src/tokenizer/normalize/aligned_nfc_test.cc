#include "tokenizer/normalize/aligned_nfc.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/sanitized_for_test.h"
#include "text/utf8.h"
#include "tokenizer/normalize/normalized_string.h"

namespace portico::tokenizer {
namespace {

TEST(AlignedNfc, TellsOfRandomTextsWhatANormalizedStringTells) {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {
      "a",      "e",      "\u0301", "\u0323", "\u0307", "क",      "\u093C", "\u094D",
      "\u1112", "\u1161", "\u11A8", "가",     "\u212B", "\u0958", "中",     " ",
      "\u0345", "😀",     "\u1E69", "\u0344", "\u0FB2", "\u0F81", "x",      "\u1100"};
  const int rounds = RandomRounds(20000);
  int told = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string text;
    for (int i = 0; i < 9; ++i) text += parts[random() % parts.size()];
    NormalizedString want(text);
    want.Normalize(NormalForm::kNfc);
    const std::optional<AlignedNfc> nfc = AlignedNfc::Of(text);
    if (!nfc) continue;
    ++told;
    ASSERT_EQ(nfc->text(), want.text()) << text;
    std::vector<Span> chars;
    for (size_t at = 0; at < nfc->text().size();) {
      const size_t length = Utf8SequenceLength(std::string_view(nfc->text()).substr(at));
      chars.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at + length)});
      at += length;
    }
    // Every range of one to three characters.
    for (size_t count = 1; count <= 3 && count <= chars.size(); ++count) {
      std::vector<Span> spans;
      for (size_t i = 0; i + count <= chars.size(); ++i) {
        spans.push_back({chars[i].begin, chars[i + count - 1].end});
      }
      std::vector<Span> found = spans;
      nfc->ToOriginal(&found);
      for (size_t i = 0; i < spans.size(); ++i) {
        ASSERT_EQ(found[i], want.ToOriginal(spans[i].begin, spans[i].end)) << text;
      }
    }
  }
  EXPECT_GT(told, rounds * 19 / 20);
}

}  // namespace
}  // namespace portico::tokenizer
