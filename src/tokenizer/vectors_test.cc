// The recorded encodes and decodes of real tokenizers, where they are at hand (PORTICO_SHARED).
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "text/json.h"
#include "tokenizer/decode/stream_decoder.h"
#include "tokenizer/shared_data_for_test.h"
#include "tokenizer/test_tokenizers.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {
namespace {

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
