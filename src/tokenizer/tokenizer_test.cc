#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "text/utf8.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/test_tokenizers.h"

namespace portico {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tokenizer::ByteLevelJson;

std::shared_ptr<const Tokenizer> Make(const std::string& json) {
  auto made = Tokenizer::FromJson(json);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *made : nullptr;
}

std::vector<TokenId> Ids(const Tokenizer& tokenizer, std::string_view text, bool special = false) {
  std::vector<TokenId> ids;
  EXPECT_TRUE(tokenizer.TryEncode(text, special, &ids).ok());
  return ids;
}

const std::vector<std::pair<std::string, std::string>> kMerges = {
    {"l", "l"}, {"h", "e"},       {"he", "ll"},        {"hell", "o"},
    {" ", "w"}, {"\xE4", "\xBD"}, {"\xE4\xBD", "\xA0"}};

TEST(TokenizerTest, TheLowestRankMergesFirstAndOfEqualOnesTheLeftmost) {
  auto t = Make(ByteLevelJson(kMerges));
  EXPECT_THAT(Ids(*t, "hello"), ElementsAre(259));
  EXPECT_THAT(Ids(*t, "lll"), ElementsAre(256, 'l'));
  EXPECT_THAT(Ids(*t, "hello world"), ElementsAre(259, 260, 'o', 'r', 'l', 'd'));
}

TEST(TokenizerTest, SpecialTokensStandAroundTheTextWhenAskedFor) {
  auto t = Make(ByteLevelJson(kMerges));
  EXPECT_THAT(Ids(*t, "he", true), ElementsAre(263, 257));
  EXPECT_THAT(Ids(*t, "", true), ElementsAre(263));
  EXPECT_TRUE(t->AddsSpecialTokens());
}

TEST(TokenizerTest, AnAddedTokenWhoseTextWasTakenByTheOneBeforeIsNone) {
  // Found by the cross-check: a token of two spaces that strips both sides was repeated for each pair of a run.
  std::string json = ByteLevelJson(kMerges);
  std::string both =
      R"({"id":266,"content":"  ","single_word":false,"lstrip":true,"rstrip":true,"normalized":false,"special":false},)";
  json.insert(json.find(R"("added_tokens":[)") + 16, both);
  auto t = Make(json);
  std::vector<TokenId> ids = Ids(*t, "      h");
  ASSERT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[1], 'h');
}

TEST(TokenizerTest, AddedTokensWrittenOutBecomeTheirIds) {
  auto t = Make(ByteLevelJson(kMerges));
  EXPECT_THAT(Ids(*t, "he<tool><|end|>he"), ElementsAre(257, 265, 264, 257));
  Tokenizer::EncodeOptions plain;
  plain.add_special_tokens = false;
  plain.parse_special = false;
  std::vector<TokenId> ids;
  ASSERT_TRUE(t->EncodeWith("<tool><s>", plain, &ids).ok());
  EXPECT_THAT(ids, ElementsAre(265, '<', 's', '>'));
}

TEST(TokenizerTest, DecodeLeavesSpecialTokensAndUnknownIdsOut) {
  auto t = Make(ByteLevelJson(kMerges));
  std::vector<TokenId> ids = {263, 259, 260, 265, 264, 99999, -5};
  EXPECT_EQ(t->Decode(ids, true), "hello w<tool>");
  EXPECT_EQ(t->Decode(ids, false), "<s>hello w<tool><|end|>");
}

TEST(TokenizerTest, BytesThatAreNoTextDecodeToReplacementCharacters) {
  auto t = Make(ByteLevelJson(kMerges));
  EXPECT_EQ(t->Decode(std::vector<TokenId>{0xE4, 'a', 0xFF}, false),
            "\xEF\xBF\xBD"
            "a\xEF\xBF\xBD");
}

TEST(TokenizerTest, InvalidUtf8EncodesAsReplacementCharacters) {
  auto t = Make(ByteLevelJson(kMerges));
  EXPECT_EQ(Ids(*t,
                "a\xFF"
                "b"),
            Ids(*t,
                "a\xEF\xBF\xBD"
                "b"));
}

TEST(TokenizerTest, OffsetsCountCodePointsAndBytes) {
  auto t = Make(ByteLevelJson(kMerges));
  auto e = t->EncodeFull("\xE4\xBD\xA0 hello", nullptr, {});
  ASSERT_TRUE(e.ok());
  EXPECT_THAT(e->ids, ElementsAre(263, 262, ' ', 259));
  EXPECT_THAT(e->offsets, ElementsAre(Span{0, 0}, Span{0, 1}, Span{1, 2}, Span{2, 7}));
  EXPECT_THAT(e->byte_offsets, ElementsAre(Span{0, 0}, Span{0, 3}, Span{3, 4}, Span{4, 9}));
  EXPECT_THAT(e->special_tokens_mask, ElementsAre(1, 0, 0, 0));
}

TEST(TokenizerTest, ATokenThatIsAByteOfACharacterStandsForAllOfIt) {
  auto t = Make(ByteLevelJson({}));
  Tokenizer::EncodeOptions options;
  options.add_special_tokens = false;
  // Characters of every length begin and end at every place of a block.
  const std::vector<std::string> kChars = {"a", "\xC3\xA9", "\xE4\xBD\xA0", "\xF0\x9F\x98\x80",
                                           " "};
  for (size_t shift = 0; shift < 64; ++shift) {
    std::string text(shift, 'a');
    for (size_t i = 0; i < 150; ++i) text += kChars[i * i % 23 % kChars.size()];
    std::vector<Span> bytes;
    std::vector<Span> chars;
    uint32_t number = 0;
    for (size_t at = 0; at < text.size(); ++number) {
      const size_t end = at + Utf8SequenceLength(std::string_view(text).substr(at));
      bytes.insert(bytes.end(), end - at, {static_cast<uint32_t>(at), static_cast<uint32_t>(end)});
      chars.insert(chars.end(), end - at, {number, number + 1});
      at = end;
    }
    auto e = t->EncodeFull(text, nullptr, options);
    ASSERT_TRUE(e.ok());
    ASSERT_EQ(e->byte_offsets, bytes);
    ASSERT_EQ(e->offsets, chars);
  }
}

TEST(TokenizerTest, ATokenKnowsItsSpellingItsBytesAndWhetherItIsSpecial) {
  auto t = Make(ByteLevelJson(kMerges));
  EXPECT_EQ(t->IdToToken(260), "\xC4\xA0w");
  EXPECT_EQ(t->TokenBytes(260), " w");
  EXPECT_EQ(t->TokenBytes(261), "\xE4\xBD");
  EXPECT_EQ(t->TokenToId("hello"), 259);
  EXPECT_EQ(t->TokenToId("nothing"), std::nullopt);
  EXPECT_EQ(t->vocab_size(), 266);
  EXPECT_TRUE(t->IsSpecial(263));
  EXPECT_FALSE(t->IsSpecial(265));
  EXPECT_FALSE(t->IsSpecial(-1));
}

TEST(TokenizerTest, ACharacterWhoseByteMergesAcrossItsBorderFirstIsNotMadeWhole) {
  // "a" takes the first byte of the next character before that character's own bytes come together.
  auto t = Make(ByteLevelJson({{"a", "\xE4"}, {"\xE4", "\xBD"}, {"\xE4\xBD", "\xA0"}}));
  EXPECT_THAT(Ids(*t, "a\xE4\xBD\xA0"), ElementsAre(256, 0xBD, 0xA0));
  EXPECT_THAT(Ids(*t, "b\xE4\xBD\xA0"), ElementsAre('b', 258));
}

TEST(TokenizerTest, NfcComposesBeforeTheModel) {
  auto t = Make(ByteLevelJson(
      {{"\xC3", "\xA9"}}, R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})",
      R"({"type":"NFC"})"));
  EXPECT_THAT(Ids(*t, "e\xCC\x81"), ElementsAre(256));
  EXPECT_THAT(Ids(*t, "xe\xCC\x81y"), ElementsAre('x', 256, 'y'));
}

TEST(TokenizerTest, ThreadsEncodeTheSameAtOnce) {
  auto t = Make(ByteLevelJson(kMerges));
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "hello w" + std::to_string(i) + " \xE4\xBD\xA0";
  std::vector<TokenId> want = Ids(*t, text);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_EQ(Ids(*t, text), want); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(TokenizerTest, AFileCutAnywhereIsRefused) {
  std::string json = ByteLevelJson(kMerges);
  for (size_t length = 0; length + 1 < json.size(); length += 7) {
    EXPECT_FALSE(Tokenizer::FromJson(json.substr(0, length)).ok()) << length;
  }
}

TEST(TokenizerTest, AnUnknownPartIsRefusedByName) {
  auto made = Tokenizer::FromJson(ByteLevelJson(kMerges, R"({"type":"Mystery"})"));
  EXPECT_THAT(std::string(MessageOf(made.status())), HasSubstr("Mystery"));
}

TEST(TokenizerTest, ADropoutIsRefused) {
  std::string json = ByteLevelJson(kMerges);
  json.replace(json.find(R"("dropout":null)"), 14, R"("dropout":0.1 )");
  EXPECT_FALSE(Tokenizer::FromJson(json).ok());
}

TEST(TokenizerTest, DeeplyNestedPartsAreRefused) {
  std::string nested = R"({"type":"NFC"})";
  for (int i = 0; i < 100; ++i) nested = R"({"type":"Sequence","normalizers":[)" + nested + "]}";
  EXPECT_FALSE(Tokenizer::FromJson(ByteLevelJson(kMerges, "null", nested)).ok());
}

TEST(TokenizerTest, AWordPieceWithoutItsUnknownTokenFailsToEncodeOnly) {
  auto t = Make(
      R"({"added_tokens":[],"model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
      R"("max_input_chars_per_word":100,"vocab":{"a":0,"##b":1}}})");
  EXPECT_THAT(Ids(*t, "ab"), ElementsAre(0, 1));
  std::vector<TokenId> ids;
  Status status = t->TryEncode("zz", false, &ids);
  EXPECT_THAT(std::string(MessageOf(status)), HasSubstr("[UNK]"));
  EXPECT_TRUE(ids.empty());
}

TEST(TokenizerTest, UnigramTakesTheMostProbableCut) {
  auto t = Make(R"({"added_tokens":[],"model":{"type":"Unigram","unk_id":0,)"
                R"("vocab":[["<unk>",0],["a",-2],["b",-2],["ab",-3],["abc",-9],["c",-1]]}})");
  EXPECT_THAT(Ids(*t, "abc"), ElementsAre(3, 5));
  EXPECT_THAT(Ids(*t, "axxb"), ElementsAre(1, 0, 2));
}

TEST(TokenizerTest, ATokenWithRstripTakesTheSpacesBehindIt) {
  std::string json = ByteLevelJson(kMerges);
  json.replace(json.find(R"("rstrip":false)"), 14, R"("rstrip":true )");
  auto t = Make(json);
  EXPECT_THAT(Ids(*t, "<s>  he"), ElementsAre(263, 257));
}

// Found by the cross-check: each was said to begin where the one before ends.
TEST(TokenizerTest, TokensThatTakeTheSpacesBehindThemMayOverlap) {
  for (const std::string normalized : {"true", "false"}) {
    std::string json = ByteLevelJson(kMerges);
    json.insert(json.find(R"("added_tokens":[)") + 16,
                R"({"id":266,"content":"  ","single_word":false,"lstrip":false,"rstrip":true,)"
                R"("normalized":)" +
                    normalized + R"(,"special":false},)");
    const auto t = Make(json);
    const auto encoding =
        t->EncodeFull("\xC3\xA9        h", nullptr, {.add_special_tokens = false});
    ASSERT_TRUE(encoding.ok()) << encoding.status();
    std::vector<Span> offsets;
    std::vector<TokenId> ids;
    ASSERT_TRUE(t->EncodeOffsets("\xC3\xA9        h", {.add_special_tokens = false},
                                 OffsetUnit::kCodePoints, &ids, &offsets)
                    .ok());
    const std::vector<Span> expected = {{0, 1}, {0, 1}, {1, 9}, {3, 9}, {5, 9}, {7, 9}, {9, 10}};
    EXPECT_EQ(encoding->offsets, expected);
    EXPECT_EQ(offsets, expected);
  }
}

}  // namespace
}  // namespace portico
