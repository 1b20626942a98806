// The fused encoders beside the parts that they stand for, on random texts. A tokenizer with an added token that is
// looked for in normalized text takes the general way, so one that never occurs makes the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "text/json_writer.h"
#include "text/utf8.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {
namespace {

const std::string kSpace = "\xE2\x96\x81";

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonString(text, &out);
  return out;
}

std::string AddedInConfig(int id, std::string_view content, bool normalized) {
  return R"({"id":)" + std::to_string(id) + R"(,"content":)" + Quoted(content) +
         R"(,"single_word":false,"lstrip":true,"rstrip":false,"special":false,"normalized":)" +
         (normalized ? "true}" : "false}");
}

std::string FileOf(const std::string& normalizer, const std::string& pre_tokenizer,
                   const std::string& model, bool general) {
  std::string added = AddedInConfig(9000, "<tool>", false);
  if (general) added += "," + AddedInConfig(9001, "\xEE\x80\x80never\xEE\x80\x80", true);
  return R"({"version":"1.0","added_tokens":[)" + added + R"(],"normalizer":)" + normalizer +
         R"(,"pre_tokenizer":)" + pre_tokenizer + R"(,"model":)" + model + "}";
}

struct Family {
  std::string normalizer;
  std::string pre_tokenizer;
  std::string model;
};

std::string SpmBpeModel(bool byte_merges) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::vector<std::string> tokens = {"<unk>"};
  for (int b = 0; b < 256; ++b) {
    tokens.push_back({'<', '0', 'x', kDigits[b >> 4], kDigits[b & 15], '>'});
  }
  for (const char* c : {"a", "b", "c", "h", "e", "t", ">", "<", "/", "0", "x", "A", ",", "\n",
                        "\xC3\xA9", "\xE4\xB8\xAD", "\xE6\x96\x87"}) {
    tokens.push_back(c);
  }
  tokens.push_back(kSpace);
  std::vector<std::pair<std::string, std::string>> merges = {
      {kSpace, kSpace},     {"h", "e"},    {"t", "he"},
      {kSpace, "the"},      {"a", "b"},    {"b", "c"},
      {"ab", "c"},          {"a", "bc"},   {"e", "a"},
      {"a", "a"},           {"<", "/"},    {kSpace, "</"},
      {">", kSpace + "</"}, {"\n", "\n"},  {"\xE4\xB8\xAD", "\xE6\x96\x87"},
      {"a", "\xC3\xA9"},    {"<", "0"},    {"<0", "x"},
      {"<0x", "0"},         {"<0x0", "A"}, {kSpace + kSpace, kSpace + kSpace}};
  if (byte_merges) merges.push_back({"<0x0A>", "a"});
  if (byte_merges) merges.push_back({"<0x0A", ">"});
  std::string list;
  for (const auto& [left, right] : merges) {
    if (std::find(tokens.begin(), tokens.end(), left + right) == tokens.end()) {
      tokens.push_back(left + right);
    }
    list += (list.empty() ? "[" : ",[") + Quoted(left) + "," + Quoted(right) + "]";
  }
  std::string vocab;
  for (size_t i = 0; i < tokens.size(); ++i) {
    vocab += (i == 0 ? "" : ",") + Quoted(tokens[i]) + ":" + std::to_string(i);
  }
  return R"({"type":"BPE","dropout":null,"unk_token":"<unk>","continuing_subword_prefix":null,)"
         R"("end_of_word_suffix":null,"fuse_unk":true,"byte_fallback":true,"vocab":{)" +
         vocab + R"(},"merges":[)" + list + "]}";
}

std::string Metaspace(const std::string& scheme, bool split) {
  return R"({"type":"Metaspace","replacement":")" + kSpace + R"(","prepend_scheme":")" + scheme +
         R"(","split":)" + (split ? "true}" : "false}");
}

std::string UnigramModel() {
  std::vector<std::pair<std::string, double>> tokens = {{"<unk>", 0},
                                                        {kSpace, -2},
                                                        {kSpace + "the", -3},
                                                        {"a", -4},
                                                        {"b", -4},
                                                        {"ab", -5},
                                                        {"abc", -5.5},
                                                        {"c", -4.5},
                                                        {"he", -5},
                                                        {"h", -6},
                                                        {"e", -6},
                                                        {"t", -6},
                                                        {"\xE4\xB8\xAD", -7},
                                                        {",", -3},
                                                        {">", -6},
                                                        {kSpace + "a", -4},
                                                        {"\xC3\xA9", -6},
                                                        {"\xE6\x96\x87", -7},
                                                        {"</", -6},
                                                        {"0", -5},
                                                        {"e\xCC\x81", -9},
                                                        {kSpace + "ab", -6.5}};
  std::string vocab;
  for (const auto& [token, score] : tokens) {
    vocab += (vocab.empty() ? "[" : ",[") + Quoted(token) + "," + std::to_string(score) + "]";
  }
  return R"({"type":"Unigram","unk_id":0,"vocab":[)" + vocab + "]}";
}

std::string WordPieceModel() {
  std::string vocab;
  int id = 0;
  for (const char* token : {"[UNK]",
                            "the",
                            "a",
                            "b",
                            "ab",
                            "abc",
                            "##a",
                            "##b",
                            "##bc",
                            "##c",
                            "##he",
                            "t",
                            "h",
                            "e",
                            "##e",
                            "##t",
                            "##h",
                            ",",
                            ">",
                            "<",
                            "/",
                            "0",
                            "##0",
                            "\xE4\xB8\xAD",
                            "##",
                            "##x",
                            "x",
                            "\xE1\x84\x80",
                            "##\xE1\x85\xA1",
                            "\xC3\xA9",
                            "##\xC3\xA9"}) {
    vocab += (id == 0 ? "" : ",") + Quoted(token) + ":" + std::to_string(id);
    ++id;
  }
  return R"({"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"##",)"
         R"("max_input_chars_per_word":12,"vocab":{)" +
         vocab + "}}";
}

std::string Bert(bool clean, bool chinese, const char* accents, bool lowercase) {
  auto flag = [](bool b) { return std::string(b ? "true" : "false"); };
  return R"({"type":"BertNormalizer","clean_text":)" + flag(clean) + R"(,"handle_chinese_chars":)" +
         flag(chinese) + R"(,"strip_accents":)" + accents + R"(,"lowercase":)" + flag(lowercase) +
         "}";
}

const std::string kReplace =
    R"({"type":"Replace","pattern":{"String":" "},"content":")" + kSpace + R"("})";
const std::string kPrepend = R"({"type":"Prepend","prepend":")" + kSpace + R"("})";
// A map of nothing.
const std::string kPrecompiled = R"({"type":"Precompiled","precompiled_charsmap":"AAAAAA=="})";

std::string RandomText(std::mt19937* random) {
  static const std::vector<std::string> kParts = {" ",
                                                  " ",
                                                  "  ",
                                                  kSpace,
                                                  "a",
                                                  "b",
                                                  "c",
                                                  "the",
                                                  "he",
                                                  "abc",
                                                  "ab",
                                                  "A",
                                                  "\xC3\x89",
                                                  "e\xCC\x81",
                                                  ">",
                                                  "</",
                                                  "> </",
                                                  ">" + kSpace + "</",
                                                  "<0x0A>",
                                                  "\n",
                                                  "\r\n",
                                                  "\r",
                                                  "\t",
                                                  ",",
                                                  "0",
                                                  "x",
                                                  "\xE4\xB8\xAD",
                                                  "\xE6\x96\x87",
                                                  "\xEA\xB0\x80",
                                                  "\xEF\xBC\x8C",
                                                  "\xE2\x80\x8B",
                                                  "\xE2\x80\x8D",
                                                  "\xCC\x81",
                                                  "\xE3\x80\xAE",
                                                  "\xD8\x80",
                                                  "\xC4\xB0",
                                                  "\xF0\x9F\x98\x80",
                                                  "\xF0\x9D\x85\xA5",
                                                  "\xC2\xA0",
                                                  "\xEF\xBF\xBD",
                                                  "<tool>",
                                                  std::string(1, '\0'),
                                                  "aaaaaaaa",
                                                  "[UNK]",
                                                  "##a",
                                                  "\xE0\xA4\x95\xE0\xA5\x8D\xE0\xA4\xB7",
                                                  "\xEF\xAC\x81",
                                                  "\xCD\xBE",
                                                  "\xE2\x89\xA0"};
  std::string text;
  size_t parts = std::uniform_int_distribution<size_t>(0, (*random)() % 8 == 0 ? 60 : 8)(*random);
  for (size_t i = 0; i < parts; ++i) {
    const std::string& part = kParts[(*random)() % kParts.size()];
    size_t times = (*random)() % 40 == 0 ? 30 : 1;
    for (size_t n = 0; n < times; ++n) text += part;
  }
  return text;
}

void ExpectSame(const Encoding& fused, const Encoding& general, const std::string& text) {
  ASSERT_EQ(fused.ids, general.ids) << text;
  ASSERT_EQ(fused.tokens, general.tokens) << text;
  ASSERT_EQ(fused.offsets, general.offsets) << text;
  ASSERT_EQ(fused.byte_offsets, general.byte_offsets) << text;
  ASSERT_EQ(fused.word_ids, general.word_ids) << text;
  ASSERT_EQ(fused.type_ids, general.type_ids) << text;
}

// Ids with offsets are those of the whole encoding, whether they were remembered by one or the other.
void ExpectSameOffsets(const Tokenizer& fused, const Encoding& want, const std::string& text) {
  for (OffsetUnit unit : {OffsetUnit::kCodePoints, OffsetUnit::kBytes}) {
    std::vector<TokenId> ids;
    std::vector<Span> offsets;
    ASSERT_TRUE(fused.EncodeOffsets(text, {}, unit, &ids, &offsets).ok());
    ASSERT_EQ(ids, want.ids) << text;
    ASSERT_EQ(offsets, unit == OffsetUnit::kBytes ? want.byte_offsets : want.offsets) << text;
  }
}

void ExpectEqualToItsParts(const Family& family, std::string_view path) {
  auto fused = Tokenizer::FromJson(FileOf(family.normalizer, family.pre_tokenizer, family.model,
                                          /*general=*/false));
  auto general = Tokenizer::FromJson(FileOf(family.normalizer, family.pre_tokenizer, family.model,
                                            /*general=*/true));
  ASSERT_TRUE(fused.ok()) << fused.status();
  ASSERT_TRUE(general.ok()) << general.status();
  ASSERT_NE((*fused)->Describe().find(path), std::string::npos) << (*fused)->Describe();
  ASSERT_NE((*general)->Describe().find("general path"), std::string::npos);
  std::mt19937 random(20261121);
  // Some texts share long beginnings, which the thread's cache copies once they came twice.
  std::vector<std::string> beginnings(4);
  for (std::string& b : beginnings) {
    while (b.size() < 700) b += RandomText(&random);
  }
  for (int round = 0; round < 600; ++round) {
    std::string text = RandomText(&random);
    if (round % 12 == 0) text = beginnings[random() % beginnings.size()] + text;
    auto want = (*general)->EncodeFull(text, nullptr, {});
    auto full = (*fused)->EncodeFull(text, nullptr, {});
    ASSERT_TRUE(want.ok() && full.ok());
    std::vector<TokenId> ids;
    (*fused)->Encode(text, true, &ids);
    ASSERT_EQ(ids, want->ids) << text;
    ExpectSame(*full, *want, text);
    ExpectSameOffsets(**fused, *want, text);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(FusedEncoderTest, SentencePieceBpeEqualsItsPartsForEveryWayToSpellSpaces) {
  std::string model = SpmBpeModel(false);
  std::string both = R"({"type":"Sequence","normalizers":[)" + kPrepend + "," + kReplace + "]}";
  std::string split =
      R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false})";
  constexpr std::string_view kPath = "fused SentencePiece BPE path";
  ExpectEqualToItsParts({both, "null", model}, kPath);
  ExpectEqualToItsParts({kReplace, split, model}, kPath);
  for (const char* scheme : {"first", "always", "never"}) {
    for (bool splits : {false, true}) {
      ExpectEqualToItsParts({"null", Metaspace(scheme, splits), model}, kPath);
    }
  }
}

TEST(FusedEncoderTest, SentencePieceBpeWhoseByteTokensMergeTakesTheGeneralWay) {
  ExpectEqualToItsParts({kReplace, "null", SpmBpeModel(true)}, "general path");
}

// The general pre-tokenizer means the same, but nobody recognizes it.
void ExpectByteLevelEqual(const std::string& fast_pre, const std::string& general_pre,
                          const char* normalizer, const std::string& post_processor = "") {
  std::vector<std::pair<std::string, std::string>> merges = {
      {"l", "l"},       {"h", "e"},    {"he", "ll"},         {" ", "w"},           {" w", "o"},
      {"\xE4", "\xBD"}, {"\xBD", " "}, {"\xE4\xBD", "\xA0"}, {"\xA0", "\xE4\xBD"}, {"a", "b"}};
  std::string fast_json = ByteLevelJson(merges, fast_pre, normalizer);
  std::string general_json = ByteLevelJson(merges, general_pre, normalizer);
  // One added token is searched for in normalized text.
  for (std::string* json : {&fast_json, &general_json}) {
    size_t at = json->find(R"("normalized":false)", json->find("<tool>"));
    json->replace(at, 18, R"("normalized":true)");
    if (post_processor.empty()) continue;
    at = json->find(R"("post_processor":)") + 17;
    json->replace(at, json->find(R"(,"decoder")") - at, post_processor);
  }
  auto fast = Tokenizer::FromJson(fast_json);
  auto general = Tokenizer::FromJson(general_json);
  ASSERT_TRUE(fast.ok() && general.ok());
  ASSERT_NE((*fast)->Describe().find("fused byte-level path"), std::string::npos);
  ASSERT_NE((*general)->Describe().find("general path"), std::string::npos);
  std::mt19937 random(20261121);
  const std::vector<std::string> more = {"<tool>",       "<|end|>", "hello",
                                         "\xE4\xBD\xA0", " wo",     "e\xCC\x81"};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (size_t i = random() % 4; i > 0; --i)
      text += RandomText(&random) + more[random() % more.size()];
    auto want = (*general)->EncodeFull(text, nullptr, {});
    auto full = (*fast)->EncodeFull(text, nullptr, {});
    ASSERT_TRUE(want.ok() && full.ok());
    ExpectSame(*full, *want, text);
    if (::testing::Test::HasFatalFailure()) return;
    // What comes again is copied from the thread's cache.
    auto again = (*fast)->EncodeFull(text, nullptr, {});
    again = (*fast)->EncodeFull(text, nullptr, {});
    ASSERT_TRUE(again.ok());
    ExpectSame(*again, *want, text);
    ExpectSameOffsets(**fast, *want, text);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

TEST(FusedEncoderTest, ByteLevelBpeEqualsItsPartsWithTheirPlaces) {
  auto split = [](std::string_view pattern) {
    return R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":")" +
           std::string(pattern) +
           R"("},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,)"
           R"("trim_offsets":true,"use_regex":false}]})";
  };
  std::string pattern =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+)";
  const std::string trim =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})";
  const std::string trim_twice = R"({"type":"Sequence","processors":[)" + trim + "," + trim + "]}";
  const std::string trim_prefixed =
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})";
  for (const char* normalizer : {"null", R"({"type":"NFC"})"}) {
    for (const std::string& post : {std::string(), trim, trim_twice, trim_prefixed}) {
      ExpectByteLevelEqual(split(pattern), split("(?:" + pattern + ")"), normalizer, post);
    }
  }
}

TEST(FusedEncoderTest, ByteLevelBpeEqualsItsPartsWithASpaceInFront) {
  std::string step =
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})";
  std::string nothing =
      R"({"type":"Split","pattern":{"String":"never"},"behavior":"Isolated","invert":false})";
  ExpectByteLevelEqual(
      step, R"({"type":"Sequence","pretokenizers":[)" + nothing + "," + step + "]}", "null");
}

TEST(FusedEncoderTest, BertEqualsItsPartsWithEveryNormalizer) {
  for (const char* accents : {"true", "false", "null"}) {
    for (int flags = 0; flags < 8; ++flags) {
      std::string normalizer = Bert((flags & 1) != 0, (flags & 2) != 0, accents, (flags & 4) != 0);
      ExpectEqualToItsParts({normalizer, R"({"type":"BertPreTokenizer"})", WordPieceModel()},
                            "fused BERT path");
    }
  }
}

TEST(FusedEncoderTest, UnigramEqualsItsParts) {
  std::string pre = R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)" +
                    Metaspace("always", true) + "]}";
  ExpectEqualToItsParts({kPrecompiled, pre, UnigramModel()}, "fused Unigram path");
}

}  // namespace
}  // namespace portico::tokenizer
