// The recorded encodes and decodes of real tokenizers, where they are at hand (PORTICO_SHARED).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "text/json.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {
namespace {

namespace fs = std::filesystem;

// Where the recorded vectors are; empty if they are not here.
fs::path SharedData() {
  const char* set = std::getenv("PORTICO_SHARED");
  fs::path shared = set ? fs::path(set) : fs::path(PORTICO_SOURCE_DIR) / "../shared";
  fs::path data = shared / "data" / "tokenizers";
  std::error_code error;
  return fs::is_directory(data, error) ? data : fs::path();
}

std::string Unpacked(const fs::path& file) {
  std::string command = "gzip -dc '" + file.string() + "'";
  std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string out;
  char block[65536];
  for (size_t n = 0; pipe && (n = fread(block, 1, sizeof(block), pipe.get())) > 0;) {
    out.append(block, n);
  }
  return out;
}

std::vector<Json> Rows(const fs::path& file) {
  std::vector<Json> rows;
  std::string text = Unpacked(file);
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    auto row = Json::Parse(std::string_view(text).substr(at, end - at));
    if (row.ok()) rows.push_back(*std::move(row));
    at = end + 1;
  }
  return rows;
}

std::vector<TokenId> IdsOf(const Json& list) {
  std::vector<TokenId> ids;
  for (const Json& id : list.as_array()) ids.push_back(static_cast<TokenId>(id.as_int()));
  return ids;
}

class VectorsTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (SharedData().empty())
      GTEST_SKIP() << "the recorded vectors are not at hand (PORTICO_SHARED)";
    folder_ = SharedData() / GetParam();
    fs::path packed = folder_ / "tokenizer.json.gz";
    auto made = fs::exists(packed) ? Tokenizer::FromJson(Unpacked(packed))
                                   : Tokenizer::Load(folder_.string());
    ASSERT_TRUE(made.ok()) << made.status();
    tokenizer_ = *made;
  }

  fs::path folder_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_P(VectorsTest, EveryRecordedTextHasTheRecordedIdsFastAndInFull) {
  for (const Json& row : Rows(folder_ / "vectors.jsonl.gz")) {
    std::string text = row.GetString("text");
    for (bool special : {false, true}) {
      std::vector<TokenId> want = IdsOf(*row.Find(special ? "ids_special" : "ids_no_special"));
      std::vector<TokenId> ids;
      ASSERT_TRUE(tokenizer_->TryEncode(text, special, &ids).ok());
      ASSERT_EQ(ids, want) << text;
      Tokenizer::EncodeOptions options;
      options.add_special_tokens = special;
      auto full = tokenizer_->EncodeFull(text, nullptr, options);
      ASSERT_TRUE(full.ok());
      ASSERT_EQ(full->ids, want) << text;
    }
  }
}

TEST_P(VectorsTest, EveryRecordedListDecodesToTheRecordedText) {
  for (const Json& row : Rows(folder_ / "vectors_decode.jsonl.gz")) {
    ASSERT_EQ(tokenizer_->Decode(IdsOf(*row.Find("ids")), row.GetBool("skip_special", false)),
              row.GetString("text"));
  }
}

TEST_P(VectorsTest, StreamsOfEncodedTextsJoinToTheirDecode) {
  for (const Json& row : Rows(folder_ / "vectors.jsonl.gz")) {
    std::vector<TokenId> ids = IdsOf(*row.Find("ids_special"));
    StreamDecoder decoder(*tokenizer_, false);
    std::string streamed;
    for (TokenId id : ids) decoder.Push(id, &streamed);
    decoder.Flush(&streamed);
    ASSERT_EQ(streamed, tokenizer_->Decode(ids, false)) << row.GetString("text");
  }
}

INSTANTIATE_TEST_SUITE_P(Families, VectorsTest,
                         ::testing::Values("gpt2", "llama-3.2", "qwen3", "deepseek-v3", "gpt-oss",
                                           "llama-2", "t5-small", "bert-base-uncased", "clip",
                                           "mistral-v0.1", "tiny-sqlpilot"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace portico::tokenizer
