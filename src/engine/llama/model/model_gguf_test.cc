// GGUF files given as the model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/llama/import/test_model_for_test.h"
#include "engine/llama/model/model.h"
#include "gguf.h"

namespace portico::llama {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ModelGgufTest : public testing::Test {
 protected:
  void SetUp() override {
    RandomModel(SmallConfig("llama")).Write(folder_.path());
    ModelOptions options;
    options.path = folder_.path();
    auto model = LlamaModel::Load(options, nullptr);
    ASSERT_TRUE(model.ok()) << MessageOf(model.status());
    imported_ = (*model)->info().file;
  }

  TempFolder cache_{"XDG_CACHE_HOME"};
  TempFolder folder_;
  std::string imported_;  // a GGUF file of a small model
};

TEST_F(ModelGgufTest, TakesEndTokensFromTheVocabularyOfAGguf) {
  gguf_context* gguf = gguf_init_from_file(imported_.c_str(), {true, nullptr});
  ASSERT_NE(gguf, nullptr);
  const std::string data = ReadFile(imported_).substr(gguf_get_data_offset(gguf));
  std::vector<std::string> tokens;
  std::vector<const char*> pointers;
  std::vector<int32_t> types;
  for (int i = 0; i < 101; ++i) tokens.push_back("token" + std::to_string(i));
  tokens[9] = "<|eot_id|>";
  for (const std::string& token : tokens) {
    pointers.push_back(token.c_str());
    types.push_back(LLAMA_TOKEN_TYPE_NORMAL);
  }
  types[9] = types[4] = LLAMA_TOKEN_TYPE_CONTROL;
  gguf_set_val_str(gguf, "tokenizer.ggml.model", "gpt2");
  gguf_set_val_str(gguf, "tokenizer.ggml.pre", "gpt-2");
  gguf_set_arr_str(gguf, "tokenizer.ggml.tokens", pointers.data(), pointers.size());
  gguf_set_arr_data(gguf, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
  gguf_set_arr_str(gguf, "tokenizer.ggml.merges", pointers.data(), 0);
  gguf_set_val_u32(gguf, "tokenizer.ggml.eos_token_id", 4);
  const std::string path = folder_.File("own.gguf");
  ASSERT_TRUE(gguf_write_to_file(gguf, path.c_str(), true));
  gguf_free(gguf);
  WriteFile(path, ReadFile(path) + data);

  ModelOptions options;
  options.path = path;
  auto model = LlamaModel::Load(options, nullptr);
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_THAT((*model)->info().eos_token_ids, ElementsAre(4, 9));
  EXPECT_EQ((*model)->info().vocab_size, 101);
}

TEST_F(ModelGgufTest, RefusesDamagedGgufFiles) {
  std::string bytes = ReadFile(imported_);
  ModelOptions options;
  options.path = folder_.File("cut.gguf");
  for (size_t size : {size_t{3}, size_t{20}, size_t{200}, bytes.size() / 2, bytes.size() - 40}) {
    WriteFile(options.path, bytes.substr(0, size));
    Status status = LlamaModel::Load(options, nullptr).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << size;
    EXPECT_THAT(std::string(MessageOf(status)), HasSubstr("cut.gguf")) << size;
  }
  // Whole, but without a tensor that libllama asks for.
  std::string renamed = bytes;
  size_t name = renamed.find("blk.1.ffn_up");
  ASSERT_NE(name, std::string::npos);
  renamed[name + 4] = '7';
  WriteFile(options.path, renamed);
  Status status = LlamaModel::Load(options, nullptr).status();
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(std::string(MessageOf(status)), HasSubstr("blk.1.ffn_up.weight"));
}

}  // namespace
}  // namespace portico::llama
