#include "tokenizer/load/folder_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/test_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The bytes are 0 … 255, "he" is 256; the file adds <s> 257 and <|end|> 258, special, and <tool> 259.
class FolderTokensTest : public ::testing::Test {
 protected:
  FolderTokensTest() {
    char name[] = "/tmp/portico-folder-tokens-XXXXXX";
    folder_ = mkdtemp(name);
    Write("tokenizer.json", ByteLevelJson({{"h", "e"}}));
  }
  ~FolderTokensTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::shared_ptr<const Tokenizer> Load(
      AddedTokensRule rule = AddedTokensRule::kAutoTokenizer) const {
    auto loaded = Tokenizer::Load(folder_.string(), {.added_tokens = rule});
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return *loaded;
  }
  // "259 <tool> SN of tokenizer_config.json": special, normalized.
  std::vector<std::string> Added(AddedTokensRule rule = AddedTokensRule::kAutoTokenizer) const {
    const auto tokenizer = Load(rule);
    std::map<TokenId, std::string> by_id;
    for (const auto& [id, entry] : tokenizer->pipeline().added_tokens().entries()) {
      const AddedToken& token = entry.token;
      std::string line = std::to_string(id) + " " + token.content + " ";
      line += token.special ? "S" : "";
      line += token.normalized ? "N" : "";
      line += token.lstrip ? "L" : "";
      by_id[id] = line + (token.source.empty() ? "" : " of " + token.source);
    }
    std::vector<std::string> lines;
    for (const auto& [id, line] : by_id) lines.push_back(line);
    return lines;
  }
  static std::vector<TokenId> Ids(const Tokenizer& tokenizer, std::string_view text) {
    std::vector<TokenId> ids;
    tokenizer.Encode(text, false, &ids);
    return ids;
  }
  std::string Note() const { return Load()->pipeline().parts().added_tokens_note; }

  std::filesystem::path folder_;
};

constexpr std::string_view kPlainClass = R"("tokenizer_class":"PreTrainedTokenizerFast")";

std::string Settings(std::string_view members) {
  return "{" + std::string(kPlainClass) + "," + std::string(members) + "}";
}

// Six tokens instead of one: the model's calls of tools were no calls any more.
TEST_F(FolderTokensTest, TokensThatOnlyTheSettingsNameAreFound) {
  Write("tokenizer_config.json", Settings(R"("added_tokens_decoder":{
      "260":{"content":"<call>","normalized":false,"special":false},
      "261":{"content":"<hidden>","special":true}})"));
  EXPECT_THAT(Added(), ElementsAre("257 <s> S", "258 <|end|> S", "259 <tool> ",
                                   "260 <call>  of tokenizer_config.json",
                                   "261 <hidden> S of tokenizer_config.json"));
  const auto tokenizer = Load();
  EXPECT_THAT(Ids(*tokenizer, "<call>x<hidden>"), ElementsAre(260, 'x', 261));
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{260, 'x', 261}, true), "<call>x");
  EXPECT_EQ(tokenizer->vocab_size(), 262);
  EXPECT_EQ(Ids(*Load(AddedTokensRule::kFile), "<call>").size(), 6u);
}

TEST_F(FolderTokensTest, TheIdsAreThoseThatComeNextNotThoseThatAreWritten) {
  Write("tokenizer_config.json", Settings(R"("added_tokens_decoder":{
      "900":{"content":"<b>"},"300":{"content":"<a>"},"7":{"content":"he"}})"));
  const auto tokenizer = Load();
  EXPECT_EQ(tokenizer->TokenToId("<a>"), 260);
  EXPECT_EQ(tokenizer->TokenToId("<b>"), 261);
  EXPECT_EQ(tokenizer->TokenToId("he"), 256);  // the vocabulary's
}

TEST_F(FolderTokensTest, ALaterFlagReplacesAnEarlierOneButSpecialStays) {
  Write("tokenizer_config.json", Settings(R"("added_tokens_decoder":{
      "258":{"content":"<|end|>","lstrip":true,"special":false},
      "259":{"content":"<tool>","normalized":true,"special":true}})"));
  EXPECT_THAT(Added(), ElementsAre("257 <s> S", "258 <|end|> NL of tokenizer_config.json",
                                   "259 <tool> SN of tokenizer_config.json"));
  EXPECT_TRUE(Load()->IsSpecial(258));
  EXPECT_TRUE(Load()->IsSpecial(259));
}

TEST_F(FolderTokensTest, AddedTokensJsonAddsWhereTheSettingsHaveNoList) {
  Write("added_tokens.json", R"({"<late>":261,"<early>":260})");
  Write("tokenizer_config.json", Settings(R"("additional_special_tokens":["<late>"])"));
  EXPECT_THAT(Added(), ElementsAre("257 <s> S", "258 <|end|> S", "259 <tool> ",
                                   "260 <early> N of added_tokens.json",
                                   "261 <late> S of added_tokens.json"));
  Write("tokenizer_config.json", Settings(R"("added_tokens_decoder":{})"));
  EXPECT_THAT(Added(), ElementsAre("257 <s> S", "258 <|end|> S", "259 <tool> "));
}

TEST_F(FolderTokensTest, SpecialTokensThatTheVocabularyLacksAreAdded) {
  Write("tokenizer_config.json",
        Settings(R"("pad_token":"<pad>","eos_token":"<tool>","image_token":"<img>",
                    "extra_special_tokens":["<x>","<s>"],"bos_token":
                    {"__type":"AddedToken","content":"he","lstrip":true,"normalized":true})"));
  EXPECT_THAT(
      Added(),
      ElementsAre("256 he SNL of tokenizer_config.json", "257 <s> S", "258 <|end|> S",
                  "259 <tool> S of tokenizer.json", "260 <pad> S of tokenizer_config.json",
                  "261 <img> S of tokenizer_config.json", "262 <x> S of tokenizer_config.json"));
  Write("tokenizer_config.json", "{}");
  Write("special_tokens_map.json",
        R"({"unk_token":{"content":"<u>","special":false},"eos_token":"<e>"})");
  EXPECT_THAT(Added(), ElementsAre("257 <s> S", "258 <|end|> S", "259 <tool> ",
                                   "260 <e> S of special_tokens_map.json",
                                   "261 <u> S of special_tokens_map.json"));
}

TEST_F(FolderTokensTest, AClassThatRebuildsHasNoTokensThatOnlyTheTokenizerJsonNames) {
  Write("tokenizer_config.json", R"({"tokenizer_class":"GPT2Tokenizer","added_tokens_decoder":{
      "257":{"content":"<|end|>","special":true}}})");
  EXPECT_THAT(Added(), ElementsAre("257 <|end|> S of tokenizer_config.json",
                                   "258 <|endoftext|> S of the class GPT2Tokenizer"));
  EXPECT_EQ(Ids(*Load(), "<tool>").size(), 6u);
  // Without a list of its own it has the tokenizer.json's.
  Write("tokenizer_config.json", R"({"tokenizer_class":"GPT2Tokenizer","eos_token":"<tool>"})");
  EXPECT_THAT(Added(), ElementsAre("257 <s> S of tokenizer.json", "258 <|end|> S of tokenizer.json",
                                   "259 <tool> S of tokenizer.json",
                                   "260 <|endoftext|> S of the class GPT2Tokenizer"));
}

TEST_F(FolderTokensTest, TheTypeOfTheModelDecidesWhereNoClassIsNamed) {
  Write("config.json", R"({"model_type":"qwen3"})");
  Write("tokenizer_config.json", R"({"eos_token":"<|end|>","added_tokens_decoder":{
      "257":{"content":"<|end|>","special":false,"normalized":true,"lstrip":true}}})");
  // Qwen2Tokenizer adds its special tokens anew, with no other flag.
  EXPECT_THAT(Added(), ElementsAre("257 <|end|> S of tokenizer_config.json",
                                   "258 <|endoftext|> S of the class Qwen2Tokenizer"));
  Write("config.json", R"({"model_type":"mistral"})");
  EXPECT_THAT(Added(),
              ElementsAre("257 <s> S", "258 <|end|> SNL of tokenizer_config.json", "259 <tool> "));
}

// Gemma's files say that <mask> is not special; its class names it mask_token. A decode without special tokens shows it by
// the files, and not by AutoTokenizer.
TEST_F(FolderTokensTest, WhatOnlyAClassNamesChangesNoFlagOfTheFilesUnderTheFoldersRule) {
  Write("tokenizer_config.json", R"({"tokenizer_class":"GemmaTokenizer","added_tokens_decoder":{
      "257":{"content":"<mask>","normalized":false,"special":false}}})");
  const auto by_class = Load();
  const auto by_files = Load(AddedTokensRule::kFolder);
  EXPECT_TRUE(by_class->IsSpecial(257));
  EXPECT_FALSE(by_files->IsSpecial(257));
  EXPECT_EQ(by_class->TokenToId("<pad>"), by_files->TokenToId("<pad>"));
}

TEST_F(FolderTokensTest, AFolderThatAutoTokenizerCannotLoadKeepsTheFilesTokens) {
  const std::string tokens = R"("added_tokens_decoder":{"260":{"content":"<call>"}},)";
  for (const auto& [settings, why] : std::map<std::string, std::string>{
           {"{" + tokens + R"("tokenizer_class":"MarianTokenizer"})", "MarianTokenizer"},
           {"{" + tokens + R"("auto_map":{"AutoTokenizer":["own.Own",null]}})", "Python code"},
           {Settings(tokens + R"("eos_token":{"content":"<e>"})"), "eos_token"},
           {Settings(tokens + R"("extra_special_tokens":[7])"), "extra_special_tokens"},
           {Settings(R"("added_tokens_decoder":{"one":{"content":"<call>"}})"), "'one' is no id"},
           {"[", "tokenizer_config.json"},
       }) {
    Write("tokenizer_config.json", settings);
    EXPECT_THAT(Added(), ElementsAre("257 <s> S", "258 <|end|> S", "259 <tool> ")) << settings;
    EXPECT_THAT(Note(), HasSubstr(why)) << settings;
  }
  // The class is known, so that the folder's own code is not needed.
  Write("tokenizer_config.json",
        Settings(tokens + R"("auto_map":{"AutoTokenizer":["own.Own",null]})"));
  EXPECT_THAT(Note(), IsEmpty());
  EXPECT_EQ(Load()->TokenToId("<call>"), 260);
}

TEST_F(FolderTokensTest, ATokenOfWhichTheNormalizerLeavesNothingLeavesTheFilesTokens) {
  Write("tokenizer.json",
        ByteLevelJson(
            {{"h", "e"}},
            R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true})",
            R"({"type":"Strip","strip_left":true,"strip_right":true})"));
  Write("added_tokens.json", R"({" ":260,"<call>":261})");
  EXPECT_THAT(Added(), ElementsAre("257 <s> S", "258 <|end|> S", "259 <tool> "));
  EXPECT_THAT(Note(), HasSubstr("nothing is left of it"));
}

TEST_F(FolderTokensTest, AFileThatIsNamedItselfHasItsOwnTokensAlone) {
  Write("tokenizer_config.json",
        Settings(R"("added_tokens_decoder":{"260":{"content":"<call>"}})"));
  const auto tokenizer = Tokenizer::Load((folder_ / "tokenizer.json").string());
  ASSERT_TRUE(tokenizer.ok());
  EXPECT_EQ((*tokenizer)->TokenToId("<call>"), std::nullopt);
}

// LlamaTokenizer has no normalizer; the files of some put a "▁" before every text, and so before such a token.
TEST_F(FolderTokensTest, ALlamaTokenizersTokensAreFoundInTheRawText) {
  Write("tokenizer.json", R"({"version":"1.0","added_tokens":[],"pre_tokenizer":null,
      "normalizer":{"type":"Prepend","prepend":"_"},"model":{"type":"WordLevel","unk_token":"u",
      "vocab":{"u":0,"_a":1}}})");
  Write("tokenizer_config.json", R"({"tokenizer_class":"LlamaTokenizer"})");
  Write("added_tokens.json", R"({"<t>":2})");
  const auto tokenizer = Load();
  const TokenId id = tokenizer->TokenToId("<t>").value_or(-1);
  EXPECT_THAT(Ids(*tokenizer, "a<t>a"), ElementsAre(1, id, 1));
}

// T5Tokenizer's hundred <extra_id_…> were added to a vocabulary of which AutoTokenizer cannot make that class.
TEST_F(FolderTokensTest, AClassOfUnigramModelsCannotBeMadeOfAnotherVocabulary) {
  for (const char* name : {"T5Tokenizer", "XLMRobertaTokenizerFast", "DebertaV2Tokenizer"}) {
    Write("tokenizer_config.json", R"({"tokenizer_class":")" + std::string(name) +
                                       R"(","added_tokens_decoder":{"260":{"content":"<new>"}}})");
    const auto tokenizer = Load();
    EXPECT_THAT(tokenizer->pipeline().parts().added_tokens_note, HasSubstr("Unigram")) << name;
    EXPECT_EQ(tokenizer->vocab_size(), 260) << name;
  }
}

// The compiled form is of the tokenizer.json alone.
TEST_F(FolderTokensTest, AChangedFileBesideACompiledTokenizerCounts) {
  setenv("PORTICO_CACHE_DIR", (folder_ / "cache").c_str(), 1);
  std::string json = ByteLevelJson({{"h", "e"}});
  json.insert(1, std::string(size_t{300} << 10, ' '));
  Write("tokenizer.json", json);
  for (const char* name : {"<one>", "<two>", "<three>"}) {
    Write("tokenizer_config.json",
          Settings(R"("added_tokens_decoder":{"260":{"content":")" + std::string(name) + R"("}})"));
    const auto tokenizer = Load();
    EXPECT_EQ(tokenizer->TokenToId(name), 260);
    EXPECT_THAT(Ids(*tokenizer, std::string("he") + name), ElementsAre(256, 260));
    EXPECT_EQ(tokenizer->vocab_size(), 261);
  }
  unsetenv("PORTICO_CACHE_DIR");
}

TEST_F(FolderTokensTest, ARankFilesFolderHasTheSettingsTokensBehindItsOwn) {
  std::filesystem::remove(folder_ / "tokenizer.json");
  Write("tiktoken.model", "aA== 0\naQ== 1\naGk= 2\n");
  Write("tiktoken_spec.json", R"({"pat_str":"\\w+","special_tokens":{"<e>":9}})");
  Write("tokenizer_config.json", Settings(R"("added_tokens_decoder":{
      "9":{"content":"<e>","special":true},"10":{"content":"<t>","special":false}})"));
  const auto tokenizer = Load();
  EXPECT_THAT(Ids(*tokenizer, "hi<e><t>"), ElementsAre(2, 9, 10));
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{9, 10}, true), "<t>");
}

}  // namespace
}  // namespace portico::tokenizer
