// Texts whose lines are added tokens, as of Gemma: what is remembered of them beside a tokenizer that remembers nothing.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/sanitized_for_test.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {
namespace {

std::string Added(int id, const std::string& content, bool normalized) {
  return R"({"id":)" + std::to_string(id) + R"(,"content":")" + content +
         R"(","single_word":false,"lstrip":false,"rstrip":false,"special":)" +
         (content == R"(\n)" ? "true" : "false") + R"(,"normalized":)" +
         (normalized ? "true}" : "false}");
}

// `general`: with an added token that never occurs and is looked for in normalized text, which no fused way does.
std::shared_ptr<const Tokenizer> Make(bool general) {
  std::string added = Added(20, R"(\n)", false) + "," + Added(21, R"(\n\n)", false) + "," +
                      Added(22, R"(\n\n\n)", false) + "," + Added(23, "<b>", false) + "," +
                      Added(24, "<b></b>\\n\\n\\n\\n\\nend", false);
  if (general) added += "," + Added(25, "\xEE\x80\x80", true);
  std::string vocab =
      R"("<unk>":0,"▁":1,"a":2,"b":3,"c":4,"▁a":5,"ab":6,"▁ab":7,"<":8,">":9,"/":10,"e":11)";
  for (int b = 0; b < 256; ++b) vocab += fmt::format(",\"<0x{:02X}>\":{}", b, 1000 + b);
  const std::string json =
      R"({"version":"1.0","added_tokens":[)" + added +
      R"(],"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},)"
      R"("model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"vocab":{)" +
      vocab + R"(},"merges":[["▁","a"],["a","b"],["▁","ab"]]}})";
  auto made = Tokenizer::FromJson(json);
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return nullptr;
  EXPECT_EQ((*made)->Describe().find("general path") != std::string::npos, general);
  return *made;
}

std::vector<TokenId> Ids(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<TokenId> ids;
  tokenizer.Encode(text, false, &ids);
  return ids;
}

class RawStretchesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(tokenizer_, nullptr);
    ASSERT_NE(reference_, nullptr);
  }

  void ExpectSameOffsets(const std::string& text) {
    const auto want = reference_->EncodeFull(text, nullptr, {});
    std::vector<TokenId> ids;
    std::vector<Span> offsets;
    ASSERT_TRUE(want.ok());
    ASSERT_TRUE(tokenizer_->EncodeOffsets(text, {}, OffsetUnit::kCodePoints, &ids, &offsets).ok());
    ASSERT_EQ(ids, want->ids) << text;
    ASSERT_EQ(offsets, want->offsets) << text;
    const auto whole = tokenizer_->EncodeFull(text, nullptr, {});
    ASSERT_TRUE(whole.ok());
    ASSERT_EQ(whole->offsets, want->offsets) << text;
    ASSERT_EQ(whole->tokens, want->tokens) << text;
    ASSERT_EQ(whole->word_ids, want->word_ids) << text;
  }

  const std::shared_ptr<const Tokenizer> tokenizer_ = Make(false);
  const std::shared_ptr<const Tokenizer> reference_ = Make(true);
};

TEST_F(RawStretchesTest, RememberedLinesHaveTheSameIdsWhateverFollows) {
  const std::vector<std::string> parts = {"a",   " ab",     "c", " ", "\n",     "\n\n",
                                          "<b>", "<b></b>", "<", "e", "\u00E9", "\u4E2D"};
  std::mt19937 random(20261124);
  std::vector<std::string> paragraphs;
  for (int i = 0; i < 12; ++i) {
    std::string text;
    while (text.size() < 300) text += parts[random() % parts.size()];
    paragraphs.push_back(text);
  }
  const std::vector<std::string> between = {"",  "\n", "\n\n", "end", "\n\n\n\n\nend",
                                            "a", " ",  "<b>"};
  for (int round = 0; round < RandomRounds(2000); ++round) {
    std::string text;
    for (int i = 0; i < 4; ++i) {
      // From anywhere on, so that the same bytes are begun, and end, at other places too.
      const std::string& paragraph = paragraphs[random() % paragraphs.size()];
      text += paragraph.substr(random() % 3 == 0 ? random() % 100 : 0) +
              between[random() % between.size()];
    }
    ASSERT_EQ(Ids(*tokenizer_, text), Ids(*reference_, text)) << text;
    if (round % 4 == 0) ExpectSameOffsets(text);
    if (HasFatalFailure()) return;
  }
}

TEST_F(RawStretchesTest, AStretchIsNotCutWhereALongerTokenMayFollow) {
  // What is remembered begins behind a token: the second stretch.
  const std::string common =
      std::string(130, 'c') + "\n" + std::string(130, 'a') + "<b></b>\n\n\n\n\n";
  const std::string more(400, 'c');
  for (const std::string& text : {common + "xyz" + more, common + "xyz" + more,
                                  common + "xyz" + more, common + "end" + more}) {
    EXPECT_EQ(Ids(*tokenizer_, text), Ids(*reference_, text)) << text;
  }
}

TEST_F(RawStretchesTest, SpecialTokensLeftAsTextAreNotMixedUpWithThoseFound) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += " ab c\n";
  for (int round = 0; round < 8; ++round) {
    Tokenizer::EncodeOptions options;
    options.add_special_tokens = false;
    options.parse_special = round % 2 == 0;
    std::vector<TokenId> ids;
    std::vector<TokenId> want;
    ASSERT_TRUE(tokenizer_->EncodeWith(text, options, &ids).ok());
    ASSERT_TRUE(reference_->EncodeWith(text, options, &want).ok());
    EXPECT_EQ(ids, want) << round;
  }
}

}  // namespace
}  // namespace portico::tokenizer
