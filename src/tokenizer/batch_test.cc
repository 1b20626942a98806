#include "tokenizer/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/source_dir_for_test.h"
#include "text/utf8.h"
#include "tokenizer/long_text.h"
#include "tokenizer/split/seams.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace portico {
namespace {

using tokenizer::ByteLevelJson;

const std::vector<std::pair<std::string, std::string>> kMerges = {
    {"l", "l"},       {"h", "e"}, {"he", "ll"}, {"hell", "o"}, {" ", "w"},
    {"\xE4", "\xBD"}, {" ", " "}, {"o", "."},   {"!", " "},    {"1", "2"}};

std::shared_ptr<const Tokenizer> Make(const std::string& json) {
  auto made = Tokenizer::FromJson(json);
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *made : nullptr;
}

// Words, spaces, marks, ideographs, line ends, numbers and added tokens, thrown together.
std::string RandomText(std::mt19937* random, size_t bytes) {
  const std::string parts[] = {
      "hello",   " ",      "  ",      "w",      "o",          "a b",       "!",
      "12",      "\n",     "\n  ",    "\u4F60", "\u3002",     "\uFF0C",    "e\u0301",
      " \u0301", "<tool>", "<|end|>", "\t",     "don't",      " 'll",      "\u0915\u093F",
      "\u00A0",  ">",      "\u2581",  "x \n",   "\U0001F600", "(\u3002 /", "Zz9"};
  std::string text;
  while (text.size() < bytes) text += parts[(*random)() % std::size(parts)];
  return text;
}

std::string Unpacked(const std::string& file) {
  std::string command = "gzip -dc '" + file + "'";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string out;
  char block[65536];
  for (size_t n = 0; pipe && (n = fread(block, 1, sizeof(block), pipe.get())) > 0;) {
    out.append(block, n);
  }
  return out;
}

// Every way that a thread count and a unit size cut `text` gives the ids of one encode.
void ExpectSameIds(const std::shared_ptr<const Tokenizer>& tokenizer, const std::string& text,
                   std::mt19937* random) {
  CpuPool pool(2, 64);
  for (bool special : {false, true}) {
    Tokenizer::EncodeOptions options;
    options.add_special_tokens = special;
    std::vector<TokenId> want;
    ASSERT_TRUE(tokenizer->EncodeWith(text, options, &want).ok());
    for (int round = 0; round < 3; ++round) {
      BatchTokenizer batch(tokenizer, &pool, {.long_text = 1, .unit = 1 + (*random)() % 200});
      std::vector<TokenId> ids;
      ASSERT_TRUE(batch.EncodeIds(text, options, &ids).ok());
      ASSERT_EQ(ids, want);
      const LongTextEncoder long_texts(tokenizer, 1 + (*random)() % 200);
      ids.clear();
      ASSERT_TRUE(long_texts.Encode(text, special, [] { return OkStatus(); }, &ids).ok());
      ASSERT_EQ(ids, want);
    }
  }
}

TEST(BatchTokenizerTest, ByteLevelTextsKeepTheirIdsWhereverTheyAreCut) {
  std::mt19937 random(7);
  const char* gpt2_prefix =
      R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})";
  const char* whole =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":false})";
  for (const auto& tokenizer :
       {Make(ByteLevelJson(kMerges)), Make(ByteLevelJson(kMerges, gpt2_prefix)),
        Make(ByteLevelJson(kMerges, whole)), Make(ByteLevelJson(kMerges, "null")),
        Make(ByteLevelJson(kMerges, whole, R"({"type":"NFC"})"))}) {
    ASSERT_TRUE(tokenizer);
    for (int i = 0; i < 15; ++i) ExpectSameIds(tokenizer, RandomText(&random, 2000), &random);
  }
}

// A BPE of characters with a normalizer and a pre-tokenizer in front.
std::shared_ptr<const Tokenizer> Characters(const std::string& normalizer,
                                            const std::string& pre_tokenizer,
                                            const std::string& added = "") {
  std::string json =
      R"({"version":"1.0","added_tokens":[)" + added + R"(],"normalizer":)" + normalizer +
      R"(,"pre_tokenizer":)" + pre_tokenizer +
      R"(,"post_processor":null,"decoder":null,"model":{"type":"BPE","unk_token":"?","fuse_unk":true,)"
      R"("byte_fallback":false,"vocab":{"?":0,"\u2581":1,"h":2,"e":3,"l":4,"o":5,"a":6,"b":7,"!":8," ":9,"ll":10,)"
      R"("\u2581\u2581":11,"\u2581a":12,"!\u2581":13,"! ":14," a":15,"lo":16,"x":17,"1":18,"2":19,"w":20},)"
      R"("merges":[["l","l"],["\u2581","\u2581"],["\u2581","a"],["!","\u2581"],["!"," "],[" ","a"],["l","o"]]}})";
  return Make(json);
}

TEST(BatchTokenizerTest, TextsOfOtherFamiliesKeepTheirIdsWhereverTheyAreCut) {
  std::mt19937 random(11);
  const std::string to_metaspace =
      R"({"type":"Replace","pattern":{"String":" "},"content":"\u2581"})";
  const std::string llama =
      R"({"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"\u2581"},)" + to_metaspace +
      "]}";
  const std::string bert =
      R"({"type":"BertNormalizer","clean_text":true,"handle_chinese_chars":true,"strip_accents":null,"lowercase":true})";
  auto metaspace = [](const char* scheme, const char* split) {
    return std::string(R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":")") +
           scheme + R"(","split":)" + split + "}";
  };
  const std::string rstrip =
      R"({"id":21,"content":"<tool>","single_word":false,"lstrip":false,"rstrip":true,"normalized":false,"special":false},)"
      R"({"id":22,"content":"w","single_word":true,"lstrip":true,"rstrip":true,"normalized":true,"special":false})";
  for (
      const auto& tokenizer :
      {Characters(llama, "null"), Characters(to_metaspace, "null", rstrip),
       Characters("null", metaspace("always", "true")),
       Characters("null", metaspace("first", "true"), rstrip),
       Characters("null", metaspace("first", "false"), rstrip),
       Characters(bert, R"({"type":"BertPreTokenizer"})", rstrip),
       Characters(R"({"type":"Strip","strip_left":true,"strip_right":true})",
                  R"({"type":"WhitespaceSplit"})"),
       Characters("null", R"({"type":"Sequence","pretokenizers":[{"type":"WhitespaceSplit"},)" +
                              metaspace("first", "true") + "]}"),
       Characters(
           to_metaspace,
           R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false})"),
       Characters(
           "null",
           R"({"type":"Split","pattern":{"String":" "},"behavior":"MergedWithPrevious","invert":false})"),
       Characters("null", R"({"type":"Whitespace"})"), Characters("null", "null")}) {
    ASSERT_TRUE(tokenizer);
    for (int i = 0; i < 15; ++i) ExpectSameIds(tokenizer, RandomText(&random, 1500), &random);
  }
}

// Each part was refused for the character before it.
TEST(BatchTokenizerTest, AModelThatKnowsWordsButNotTheirLettersTakesLongTexts) {
  std::mt19937 random(17);
  for (const std::string model :
       {R"("type":"WordLevel","unk_token":"?")",
        R"("type":"WordPiece","unk_token":"?","max_input_chars_per_word":100,)"
        R"("continuing_subword_prefix":"##")"}) {
    const auto tokenizer = Make(R"({"pre_tokenizer":{"type":"WhitespaceSplit"},"model":{)" + model +
                                R"(,"vocab":{"hello":0,"world":1,"a":2}}})");
    ASSERT_TRUE(tokenizer);
    std::string text;
    while (text.size() < 1000)
      text += random() % 4 == 0 ? "a " : random() % 2 == 0 ? "hello " : "world ";
    ExpectSameIds(tokenizer, text, &random);
    const tokenizer::Seams seams(tokenizer->pipeline());
    EXPECT_EQ(seams.Find("hello a world", 1, 13), 7u);
  }
}

TEST(BatchTokenizerTest, ALongTextIsReallyCut) {
  auto tokenizer = Make(ByteLevelJson(kMerges));
  tokenizer::Seams seams(tokenizer->pipeline());
  EXPECT_TRUE(seams.any());
  EXPECT_EQ(seams.Find("hello world", 1, 11), 5u);
  EXPECT_EQ(seams.Find("<s> hello  world", 1, 16), 9u);  // not behind an added token
  EXPECT_EQ(seams.Find("a\u4F60\u3002b", 1, 8), 4u);
  EXPECT_EQ(seams.Find("hello", 1, 5), 5u);
}

TEST(BatchTokenizerTest, TextsThatAreNoUtf8AreTheSameInParts) {
  std::mt19937 random(3);
  auto tokenizer = Make(ByteLevelJson(kMerges));
  for (int i = 0; i < 20; ++i) {
    std::string text = RandomText(&random, 1000);
    for (int k = 0; k < 50; ++k) text[random() % text.size()] = static_cast<char>(random());
    ExpectSameIds(tokenizer, text, &random);
  }
}

TEST(BatchTokenizerTest, BatchesKeepTheirOrder) {
  std::mt19937 random(5);
  auto tokenizer = Make(ByteLevelJson(kMerges));
  CpuPool pool(3, 64);
  BatchTokenizer batch(tokenizer, &pool, {.long_text = 500, .unit = 100});
  std::vector<std::string> texts;
  std::vector<std::string_view> views;
  std::vector<BatchTokenizer::Input> inputs;
  for (int i = 0; i < 200; ++i) texts.push_back(RandomText(&random, random() % 1000));
  for (const std::string& text : texts) {
    views.push_back(text);
    inputs.push_back({text, "pair"});
  }
  auto ids = batch.EncodeIds(views, {});
  ASSERT_TRUE(ids.ok());
  auto encodings = batch.Encode(inputs, {});
  ASSERT_TRUE(encodings.ok());
  std::vector<std::span<const TokenId>> lists(ids->begin(), ids->end());
  std::vector<std::string> back = batch.Decode(lists, true);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<TokenId> want;
    tokenizer->Encode(texts[i], true, &want);
    EXPECT_EQ((*ids)[i], want);
    std::string_view pair = "pair";
    EXPECT_EQ((*encodings)[i].ids, tokenizer->EncodeFull(texts[i], &pair, {})->ids);
    EXPECT_EQ(back[i], tokenizer->Decode(want, true));
  }
  EXPECT_TRUE(batch.EncodeIds(std::span<const std::string_view>(), {})->empty());
}

TEST(BatchTokenizerTest, ABatchIsPaddedToItsLongestWhereTheFileAsksForThat) {
  std::string json = ByteLevelJson(kMerges);
  std::string padding =
      R"("padding":{"strategy":"BatchLongest","direction":"Left","pad_to_multiple_of":null,"pad_id":1,"pad_type_id":0,"pad_token":"p"})";
  json.replace(json.find(R"("padding":null)"), 14, padding);
  auto tokenizer = Make(json);
  BatchTokenizer batch(tokenizer, nullptr);
  Tokenizer::EncodeOptions options;
  options.truncation_and_padding = true;
  std::vector<std::string_view> texts = {"ab", "hello he"};
  auto ids = batch.EncodeIds(texts, options);
  ASSERT_TRUE(ids.ok());
  EXPECT_THAT((*ids)[0], ::testing::ElementsAre(1, 266, 'a', 'b'));
  EXPECT_EQ((*ids)[1].size(), 4u);
}

// The real tokenizers, where they are at hand, and the demo model's.
TEST(BatchTokenizerTest, RealTokenizersKeepTheIdsOfLongTexts) {
  namespace fs = std::filesystem;
  std::mt19937 random(13);
  std::string text;
  for (const char* file : {"/README.md", "/src/tokenizer/batch_test.cc"}) {
    std::ifstream in(SourceDir() + std::string(file));
    text.append(std::istreambuf_iterator<char>(in), {});
  }
  text = ToValidUtf8(std::string_view(text).substr(0, 15000));
  text += RandomText(&random, 5000);
  std::vector<std::string> paths = {SourceDir() + "/models/demo"};
  const char* set = std::getenv("PORTICO_SHARED");
  fs::path shared = set ? fs::path(set) : fs::path(SourceDir()) / "../shared";
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(shared / "data" / "tokenizers", error)) {
    paths.push_back(entry.path());
  }
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    std::string packed = path + "/tokenizer.json.gz";
    auto made =
        fs::exists(packed, error) ? Tokenizer::FromJson(Unpacked(packed)) : Tokenizer::Load(path);
    if (made.ok()) ExpectSameIds(*made, text, &random);
  }
}

}  // namespace
}  // namespace portico
