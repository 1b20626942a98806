#include "tokenizer/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "base/sanitized_for_test.h"
#include "fmt/format.h"
#include "tokenizer/load/gguf.h"
#include "tokenizer/load/tokenizer_config.h"
#include "tokenizer/normalize/charsmap.h"
#include "tokenizer/test_tokenizers.h"

namespace portico::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/portico-tokenizer-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string Write(const std::string& name, std::string_view text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
    return (path_ / name).string();
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

template <typename T>
void Put(T value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void PutText(std::string_view text, std::string* out) {
  Put<uint64_t>(text.size(), out);
  out->append(text);
}

void PutTexts(std::string_view key, const std::vector<std::string>& texts, std::string* out) {
  PutText(key, out);
  Put<uint32_t>(9, out);
  Put<uint32_t>(8, out);
  Put<uint64_t>(texts.size(), out);
  for (const std::string& text : texts) PutText(text, out);
}

// A GPT-2 vocabulary of the bytes, "he" and <s>.
std::string Gguf(std::string_view chat_template = "{{ messages }}") {
  std::string file = "GGUF";
  Put<uint32_t>(3, &file);
  Put<uint64_t>(0, &file);
  Put<uint64_t>(7, &file);
  auto text = [&](std::string_view key, std::string_view value) {
    PutText(key, &file);
    Put<uint32_t>(8, &file);
    PutText(value, &file);
  };
  text("tokenizer.ggml.model", "gpt2");
  text("tokenizer.ggml.pre", "gpt-2");
  text("tokenizer.chat_template", chat_template);
  std::vector<std::string> tokens;
  for (int b = 0; b < 256; ++b) tokens.push_back(ToByteLevel(std::string(1, static_cast<char>(b))));
  tokens.insert(tokens.end(), {"he", "<s>"});
  PutTexts("tokenizer.ggml.tokens", tokens, &file);
  PutTexts("tokenizer.ggml.merges", {"h e"}, &file);
  PutText("tokenizer.ggml.token_type", &file);
  Put<uint32_t>(9, &file);
  Put<uint32_t>(5, &file);
  Put<uint64_t>(258, &file);
  for (int i = 0; i < 258; ++i) Put<int32_t>(i == 257 ? 3 : 1, &file);
  PutText("tokenizer.ggml.bos_token_id", &file);
  Put<uint32_t>(4, &file);
  Put<uint32_t>(257, &file);
  return file;
}

TEST(LoadTest, AGgufFileGivesItsVocabularyAndItsTemplate) {
  Folder folder;
  std::string path = folder.Write("m.gguf", Gguf());
  auto t = Tokenizer::Load(path);
  ASSERT_TRUE(t.ok()) << t.status();
  std::vector<TokenId> ids;
  (*t)->Encode("he<s>x", false, &ids);
  EXPECT_THAT(ids, ElementsAre(256, 257, 'x'));
  auto config = LoadTokenizerConfig(path);
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->bos_token, "<s>");
  EXPECT_EQ(*config->FindChatTemplate("default"), "{{ messages }}");
}

TEST(LoadTest, TextsAreMadeLowerCaseFirstWhereTheCallerSaysSo) {
  Folder folder;
  constexpr std::string_view kJson =
      R"({"version":"1.0","normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"added_tokens":)"
      R"([{"id":2,"content":"S","single_word":false,"lstrip":false,"rstrip":false,)"
      R"("normalized":false,"special":true}],"model":{"type":"WordLevel","unk_token":"u",)"
      R"("vocab":{"u":0,"a":1}}})";
  const std::string path = folder.Write("tokenizer.json", kJson);
  std::vector<TokenId> as_it_is, lower;
  (*Tokenizer::Load(path))->Encode("A S a", false, &as_it_is);
  EXPECT_THAT(as_it_is, ElementsAre(0, 2, 1));
  (*Tokenizer::Load(path, {.lower_case = true}))->Encode("A S a", false, &lower);
  EXPECT_THAT(lower, ElementsAre(1, 2, 1));
  const auto refused = Tokenizer::Load(folder.Write("m.gguf", Gguf()), {.lower_case = true});
  EXPECT_EQ(refused.status().code(), StatusCode::kUnimplemented);
}

// People add COVID and covid to a model that makes all text lower case. Such files were once refused.
TEST(LoadTest, OfAddedTokensThatLookTheSameSpecialOnesAreFoundThenTheFirst) {
  const auto ids_of = [](std::string_view first_is_special, std::string_view second_is_special) {
    Folder folder;
    const auto token = [](int id, std::string_view content, std::string_view special) {
      return fmt::format(R"({{"id":{},"content":"{}","single_word":false,"lstrip":false,)"
                         R"("rstrip":false,"normalized":true,"special":{}}})",
                         id, content, special);
    };
    const std::string path = folder.Write(
        "tokenizer.json",
        R"({"version":"1.0","normalizer":{"type":"Lowercase"},"pre_tokenizer":{"type":"Whitespace"},)"
        R"("added_tokens":[)" +
            token(2, "COVID", first_is_special) + "," + token(3, "covid", second_is_special) +
            R"(],"model":{"type":"WordLevel","unk_token":"u","vocab":{"u":0,"a":1}}})");
    const auto tokenizer = Tokenizer::Load(path);
    EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
    std::vector<TokenId> ids;
    if (tokenizer.ok()) (*tokenizer)->Encode("a Covid", false, &ids);
    return ids;
  };
  EXPECT_THAT(ids_of("false", "false"), ElementsAre(1, 2));
  EXPECT_THAT(ids_of("false", "true"), ElementsAre(1, 3));
  EXPECT_THAT(ids_of("true", "true"), ElementsAre(1, 2));
}

TEST(LoadTest, LowerCaseComesBeforeTheFilesOwnNormalizerAndOnlyOnce) {
  for (const std::string json :
       {R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]}})",
        R"({"normalizer":{"type":"BertNormalizer","lowercase":true}})"}) {
    EXPECT_EQ(*WithLowercase(json), json);
  }
  EXPECT_EQ(
      *WithLowercase(R"({"normalizer":{"type":"NFC"},"model":{"type":"BPE"}})"),
      R"({"normalizer":{"type":"Sequence","normalizers":[{"type":"Lowercase"},{"type":"NFC"}]},"model":{"type":"BPE"}})");
}

TEST(LoadTest, AGgufFileIsCompiledByItsMetadataNotByItsWeights) {
  Folder folder;
  setenv("PORTICO_CACHE_DIR", folder.path().c_str(), 1);
  const std::string metadata = Gguf(std::string(size_t{1} << 19, ' '));
  for (const char* weights : {"", "weights", "others"}) {
    auto t = Tokenizer::Load(folder.Write("m.gguf", metadata + weights));
    ASSERT_TRUE(t.ok()) << t.status();
    std::vector<TokenId> ids;
    (*t)->Encode("he<s>x", false, &ids);
    EXPECT_THAT(ids, ElementsAre(256, 257, 'x'));
    EXPECT_EQ((*t)->Decode(ids, false), "he<s>x");
    size_t compiled = 0;
    for (const auto& e : fs::directory_iterator(folder.path() + "/tokenizers")) {
      compiled += e.path().extension() == ".tokenizer" ? 1 : 0;
    }
    EXPECT_EQ(compiled, 1u);
  }
  unsetenv("PORTICO_CACHE_DIR");
}

TEST(LoadTest, AGgufFileCutAnywhereIsRefused) {
  std::string file = Gguf();
  for (size_t length = 0; length < file.size(); length += 3) {
    EXPECT_FALSE(PartsFromGguf(file.substr(0, length)).ok()) << length;
  }
}

TEST(LoadTest, AGgufFileThatClaimsHugeCountsIsRefusedAtOnce) {
  std::string file = "GGUF";
  Put<uint32_t>(3, &file);
  Put<uint64_t>(0, &file);
  Put<uint64_t>(1, &file);
  PutText("tokenizer.ggml.tokens", &file);
  Put<uint32_t>(9, &file);
  Put<uint32_t>(5, &file);
  Put<uint64_t>(UINT64_MAX / 2, &file);
  EXPECT_FALSE(PartsFromGguf(file).ok());
}

TEST(LoadTest, AnUnknownPreTokenizerNameIsRefusedByName) {
  std::string file = Gguf();
  size_t at = file.find("gpt-2");
  std::memcpy(file.data() + at, "gpt-9", 5);
  EXPECT_THAT(std::string(MessageOf(PartsFromGguf(file).status())), HasSubstr("gpt-9"));
}

TEST(LoadTest, ARankFileNeedsItsPattern) {
  Folder folder;
  std::string ranks = "aA== 0\naQ== 1\naGk= 2\nIA== 3\n";
  std::string path = folder.Write("mine.tiktoken", ranks);
  EXPECT_THAT(std::string(MessageOf(Tokenizer::Load(path).status())),
              HasSubstr("tiktoken_spec.json"));
  folder.Write("tiktoken_spec.json", R"({"pat_str":"\\w+|\\s+","special_tokens":{"<e>":9}})");
  auto t = Tokenizer::Load(folder.path());
  ASSERT_TRUE(t.ok()) << t.status();
  std::vector<TokenId> ids;
  (*t)->Encode("hi ih<e>", false, &ids);
  EXPECT_THAT(ids, ElementsAre(2, 3, 1, 0, 9));

  // As tiktoken: what no match holds is no token.
  folder.Write("tiktoken_spec.json", R"({"pat_str":"\\w","special_tokens":{}})");
  t = Tokenizer::Load(folder.path());
  ASSERT_TRUE(t.ok()) << t.status();
  ids.clear();
  (*t)->Encode("hi ih", false, &ids);
  EXPECT_THAT(ids, ElementsAre(0, 1, 1, 0));
}

TEST(LoadTest, RandomBytesAreRefusedByEveryLoader) {
  std::mt19937 random(3);
  for (int round = 0; round < RandomRounds(3000); ++round) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_FALSE(PartsFromJson(bytes).ok());
    EXPECT_FALSE(PartsFromGguf("GGUF" + bytes).ok());
    static_cast<void>(PartsFromSentencePiece(bytes).ok());
    static_cast<void>(PartsFromTiktoken(bytes, "cl100k_base").ok());
    if (auto map = Charsmap::Parse(bytes); map.ok()) static_cast<void>(map->Longest(bytes));
  }
}

TEST(LoadTest, IdsFarApartDoNotTakeMemory) {
  EXPECT_FALSE(
      Tokenizer::FromJson(
          R"({"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"b":2147483000}}})")
          .ok());
  EXPECT_FALSE(
      Tokenizer::FromJson(
          R"({"model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0,"b":99999999999}}})")
          .ok());
}

TEST(LoadTest, AMissingFolderIsNotFound) {
  EXPECT_EQ(Tokenizer::Load("/nowhere/at/all").status().code(), StatusCode::kNotFound);
}

TEST(TokenizerConfigTest, ATemplateFileWinsAndNamedOnesAreAdded) {
  Folder folder;
  folder.Write(
      "tokenizer_config.json",
      R"({"bos_token":{"content":"<b>"},"eos_token":"<e>","pad_token":null,"image_token":"<i>",)"
      R"("add_bos_token":true,"model_max_length":1e30,"chat_template":"old"})");
  folder.Write("special_tokens_map.json", R"({"unk_token":"<u>","bos_token":"<other>"})");
  folder.Write("chat_template.jinja", "new");
  folder.Write("additional_chat_templates/tool_use.jinja", "tools");
  auto config = LoadTokenizerConfig(folder.path());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->bos_token, "<other>");
  EXPECT_EQ(config->eos_token, "<e>");
  EXPECT_EQ(config->unk_token, "<u>");
  EXPECT_EQ(config->pad_token, "");
  EXPECT_EQ(config->add_bos_token, true);
  EXPECT_EQ(*config->FindChatTemplate("default"), "new");
  EXPECT_EQ(*config->FindChatTemplate("tool_use"), "tools");
  EXPECT_EQ(config->FindChatTemplate("none"), nullptr);
  EXPECT_THAT(config->other_tokens,
              ElementsAre(std::pair<std::string, std::string>("image_token", "<i>")));
}

TEST(TokenizerConfigTest, NamedTemplateFilesAreInsteadOfTheConfigs) {
  Folder folder;
  folder.Write("tokenizer_config.json", R"({"chat_template":"old"})");
  folder.Write("additional_chat_templates/rag.jinja", "rag");
  auto config = LoadTokenizerConfig(folder.path());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->FindChatTemplate("default"), nullptr);
  EXPECT_EQ(*config->FindChatTemplate("rag"), "rag");
}

TEST(TokenizerConfigTest, WhatTheConfigDoesNotNameIsTheClasss) {
  Folder folder;
  folder.Write("special_tokens_map.json", R"({"unk_token":"<u>"})");
  folder.Write("tokenizer_config.json",
               R"({"tokenizer_class":"LlamaTokenizerFast","bos_token":null})");
  auto config = LoadTokenizerConfig(folder.path());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->bos_token, "");  // the file says that there is none
  EXPECT_EQ(config->eos_token, "</s>");
  EXPECT_EQ(config->unk_token, "<u>");

  folder.Write("tokenizer.json", ByteLevelJson({}));  // for which the class was not made
  EXPECT_EQ(LoadTokenizerConfig(folder.path())->eos_token, "");

  folder.Write("tokenizer_config.json",
               R"({"tokenizer_class":"GPT2Tokenizer","added_tokens_decoder":{}})");
  EXPECT_EQ(LoadTokenizerConfig(folder.path())->bos_token, "<|endoftext|>");
  EXPECT_EQ(LoadTokenizerConfig(folder.path())->unk_token, "<|endoftext|>");
  folder.Write("tokenizer_config.json", R"({"tokenizer_class":"OwnTokenizer"})");
  EXPECT_EQ(LoadTokenizerConfig(folder.path())->eos_token, "");
}

TEST(TokenizerConfigTest, AListOfTemplatesKeepsItsNames) {
  Folder folder;
  folder.Write(
      "tokenizer_config.json",
      R"({"chat_template":[{"name":"default","template":"a"},{"name":"rag","template":"b"}]})");
  auto config = LoadTokenizerConfig(folder.path());
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(*config->FindChatTemplate("rag"), "b");
  folder.Write("tokenizer_config.json", R"({"chat_template":7})");
  EXPECT_FALSE(LoadTokenizerConfig(folder.path()).ok());
}

}  // namespace
}  // namespace portico::tokenizer
