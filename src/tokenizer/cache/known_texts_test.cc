// Long texts that are known in part, beside a tokenizer that knows nothing yet: what is remembered of one text must not show
// in the ids of another.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/sanitized_for_test.h"
#include "text/utf8.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {
namespace {

// Whatever a word ends in merges with an h.
std::string ByteLevel() {
  return ByteLevelJson({{"t", "h"},
                        {"th", "e"},
                        {" ", "the"},
                        {"a", "b"},
                        {"o", "n"},
                        {"1", "2"},
                        {"e", "h"},
                        {"h", "h"},
                        {"n", "h"},
                        {"b", "h"},
                        {"a", "h"},
                        {"o", "h"},
                        {"2", "h"},
                        {"1", "h"}});
}

std::string SentencePiece() {
  std::string vocab =
      R"("<unk>":0,"▁":1,"a":2,"b":3,"t":4,"h":5,"e":6,"th":7,"the":8,"▁the":9,"ab":10,"o":11,"n":12,"on":13,"eh":14,"hh":15,"nh":16,"bh":17,"ah":18,"oh":19)";
  for (int b = 0; b < 256; ++b) vocab += fmt::format(",\"<0x{:02X}>\":{}", b, 1000 + b);
  return R"({"version":"1.0","added_tokens":[],"normalizer":{"type":"Replace","pattern":{"String":" "},"content":"▁"},)"
         R"("model":{"type":"BPE","unk_token":"<unk>","fuse_unk":true,"byte_fallback":true,"vocab":{)" +
         vocab +
         R"(},"merges":[["t","h"],["th","e"],["▁","the"],["a","b"],["o","n"],["e","h"],["h","h"],["n","h"],["b","h"],["a","h"],["o","h"]]}})";
}

// U+0001 becomes nothing.
std::string Unigram() {
  return R"({"version":"1.0","added_tokens":[],)"
         R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"IAAAAAAQAAD/AAAA/wAAAP8AAAD/AAAAAQkAAP8AAAAAAACAAA=="},)"
         R"("pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)"
         R"({"type":"Metaspace","replacement":"▁","prepend_scheme":"always","split":true}]},)"
         R"("model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["▁",-2],["▁the",-3],["th",-4],["t",-6],["h",-6],["a",-5],)"
         R"(["ab",-5.5],["b",-6],["on",-4],["o",-6],["n",-6],["1",-5],["2",-5],["中",-7],["ah",-6],["▁a",-5]]}})";
}

std::string WordPiece() {
  return R"({"version":"1.0","added_tokens":[],)"
         R"("normalizer":{"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true},)"
         R"("pre_tokenizer":{"type":"BertPreTokenizer"},)"
         R"("model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##","max_input_chars_per_word":100,)"
         R"("vocab":{"[UNK]":0,"the":1,"ab":2,"##ab":3,"on":4,"th":5,"a":6,"##h":7,"o":8,"1":9,"##2":10,"中":11,"?":12,"##the":13,)"
         R"("##a":14,"##on":15,"2":16,"##th":17,"##o":18,"##1":19,"h":20,"!":21,"e":22}}})";
}

struct Encoded {
  std::vector<TokenId> ids;
  std::vector<Span> offsets;
  friend bool operator==(const Encoded&, const Encoded&) = default;
};

Encoded Encode(const Tokenizer& tokenizer, const std::string& text) {
  Encoded out;
  Tokenizer::EncodeOptions options;
  options.add_special_tokens = false;
  EXPECT_TRUE(
      tokenizer.EncodeOffsets(text, options, OffsetUnit::kCodePoints, &out.ids, &out.offsets).ok());
  std::vector<TokenId> ids;
  tokenizer.Encode(text, false, &ids);
  EXPECT_EQ(ids, out.ids);
  return out;
}

class KnownTextsTest : public ::testing::TestWithParam<std::string (*)()> {
 protected:
  void SetUp() override {
    known_ = Fresh();
    Learn();
  }

  // A new base.
  void Learn() {
    base_ = Words(12'000);
    for (int i = 0; i < 3; ++i) Encode(*known_, base_);
  }

  static std::shared_ptr<const Tokenizer> Fresh() {
    auto made = Tokenizer::FromJson(GetParam()());
    EXPECT_TRUE(made.ok()) << made.status();
    return *made;
  }

  std::string Words(size_t bytes) {
    constexpr const char* kWords[] = {"the", "abab", "on", "12",   "th", "bat", "a",  "o",
                                      "1",   "\n\n", "é",  "中文", "?!", "'s",  "  ", "\1"};
    std::string text;
    while (text.size() < bytes) {
      text += kWords[random_() % std::size(kWords)];
      if (random_() % 4 != 0) text += ' ';
    }
    return text;
  }

  // The character at `at` or behind it.
  size_t Border(size_t at) const {
    while (at < base_.size() && IsTailByte(base_[at])) ++at;
    return at;
  }

  void ExpectAsNew(const std::string& text, int times) {
    const Encoded want = Encode(*Fresh(), text);
    for (int i = 0; i < times; ++i) ASSERT_TRUE(Encode(*known_, text) == want) << text;
  }

  std::mt19937 random_{11};
  std::shared_ptr<const Tokenizer> known_;
  std::string base_;
};

TEST_P(KnownTextsTest, TextsThatAreKnownInPartHaveTheIdsOfNewOnes) {
  for (int round = 0; round < (kSanitized ? 8 : 60); ++round) {
    // A beginning of the base, something else or nothing, and the base from somewhere on, of any length.
    std::string text = base_.substr(0, Border(random_() % base_.size()));
    if (random_() % 2 == 0) text += Words(1 + random_() % 700);
    if (random_() % 2 == 0) text += base_.substr(Border(random_() % base_.size()));
    ExpectAsNew(text, 3);
  }
}

TEST_P(KnownTextsTest, WhatFollowsAStretchDecidesWhereItsLastPieceEnds) {
  const std::string rest = Words(300);
  for (int i = 0; i < (kSanitized ? 1 : 10); ++i) {
    Learn();
    // The base's first stretch ends there.
    for (size_t at = Border(512); at < 530; at = Border(at + 1)) {
      for (const char* next : {"h", " ", "2"}) ExpectAsNew(base_.substr(0, at) + next + rest, 1);
    }
  }
}

TEST_P(KnownTextsTest, WhatIsInFrontOfAStretchDecidesWhatItsFirstTokenStandsFor) {
  for (int i = 0; i < (kSanitized ? 1 : 3); ++i) {
    Learn();
    std::vector<std::string> ends;
    constexpr size_t kApart = kSanitized ? 400 : 1;
    for (size_t at = base_.find(" \1"); at < base_.size(); at = base_.find(" \1", at + kApart)) {
      ends.push_back(base_.substr(at + 1, 5000));
    }
    for (const std::string& end : ends) ExpectAsNew(end, 1);
    // Now as the first of a text before it is one inside of it.
    known_ = Fresh();
    for (const std::string& end : ends) ExpectAsNew(end, 3);
    ExpectAsNew(base_, 1);
  }
}

std::string NameOf(const ::testing::TestParamInfo<std::string (*)()>& kind) {
  constexpr const char* kNames[] = {"ByteLevel", "SentencePiece", "Unigram", "WordPiece"};
  return kNames[kind.index];
}

INSTANTIATE_TEST_SUITE_P(Kinds, KnownTextsTest,
                         ::testing::Values(&ByteLevel, &SentencePiece, &Unigram, &WordPiece),
                         NameOf);

}  // namespace
}  // namespace portico::tokenizer
