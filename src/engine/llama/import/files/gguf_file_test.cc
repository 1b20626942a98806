#include "engine/llama/import/files/gguf_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "engine/llama/import/plan/gguf_writer.h"
#include "engine/llama/import/test_model_for_test.h"

namespace portico::llama {
namespace {

using testing::HasSubstr;

class GgufFileTest : public testing::Test {
 protected:
  void SetUp() override {
    TestModel model =
        RandomModel(SmallConfig("llama", {{"num_hidden_layers", 1}, {"hidden_size", 32}}));
    model.Write(folder_.path());
    auto config = ParseHfConfig(model.config.Dump(), "config.json");
    ASSERT_TRUE(config.ok());
    auto weights = WeightFiles::Open(folder_.path());
    ASSERT_TRUE(weights.ok());
    auto plan = PlanImport(*config, *weights, ImportDtype::kAuto);
    ASSERT_TRUE(plan.ok()) << MessageOf(plan.status());
    ASSERT_TRUE(WriteGguf(*plan, *weights, path_, [](double) {}).ok());
    bytes_ = ReadFile(path_);
    EXPECT_EQ(bytes_.size(), *GgufBytes(*plan));
  }

  std::string Complaint(const std::string& bytes) {
    WriteFile(path_, bytes);
    return std::string(MessageOf(ReadGgufModel(path_).status()));
  }

  TempFolder folder_;
  const std::string path_ = folder_.File("model.gguf");
  std::string bytes_;
};

TEST_F(GgufFileTest, ReadsWhatTheWriterWrote) {
  EXPECT_TRUE(LooksLikeGguf(path_));
  auto info = ReadGgufModel(path_);
  ASSERT_TRUE(info.ok()) << MessageOf(info.status());
  EXPECT_EQ(info->architecture(), "llama");
  EXPECT_EQ(info->Int("block_count"), 1);
  EXPECT_EQ(info->Int("embedding_length"), 32);
  EXPECT_EQ(info->Int("nothing"), std::nullopt);
  EXPECT_FLOAT_EQ(static_cast<float>(*info->Float("rope.freq_base")), 10000.0f);
  EXPECT_EQ(info->Text("tokenizer.ggml.model"), "none");
  EXPECT_EQ(info->tensors.size(), 12u);
}

TEST_F(GgufFileTest, EveryCutIsRefused) {
  // Only the padding behind the last tensor may be missing.
  for (size_t size = 0; size + 32 < bytes_.size(); size += size < 256 ? 1 : 61) {
    EXPECT_THAT(Complaint(bytes_.substr(0, size)), HasSubstr("model.gguf")) << size;
  }
}

TEST_F(GgufFileTest, NamesTheFault) {
  EXPECT_THAT(Complaint("{\"not\": \"one\"}"), HasSubstr("is not a GGUF file"));
  EXPECT_FALSE(LooksLikeGguf(path_));
  std::string version = bytes_;
  version[4] = 1;
  EXPECT_THAT(Complaint(version), HasSubstr("version 1"));
  version.replace(4, 4, std::string("\0\0\0\3", 4));
  EXPECT_THAT(Complaint(version), HasSubstr("byte order"));
  std::string many = bytes_;
  many.replace(8, 8, std::string(7, '\xff') + '\x7f');
  EXPECT_THAT(Complaint(many), HasSubstr("claims"));
  std::string layers = bytes_;
  size_t key = layers.find("llama.block_count");
  layers[key + 17 + 4] = 0;
  EXPECT_THAT(Complaint(layers), HasSubstr("llama.block_count is out of range"));
  // Without a tokenizer libllama allocated by it, up to 2^31 tokens.
  std::string vocabulary = bytes_;
  key = vocabulary.find("llama.vocab_size");
  vocabulary[key + 16 + 4 + 3] = '\x80';
  EXPECT_THAT(Complaint(vocabulary), HasSubstr("llama.vocab_size is"));
  std::string rotation = bytes_;
  key = rotation.find("llama.rope.dimension_count");
  rotation[key + 26 + 4] = 6;
  EXPECT_THAT(Complaint(rotation), HasSubstr("llama.rope.dimension_count is out of range"));
  std::string scaling = bytes_;
  key = scaling.find("llama.rope.scaling.type");
  scaling[key + 23 + 4 + 8] = 'N';
  EXPECT_THAT(Complaint(scaling), HasSubstr("llama.rope.scaling.type is out of range"));
  EXPECT_THAT(Complaint(bytes_.substr(0, bytes_.size() - 100)), HasSubstr("is cut"));
}

// Random damage must give a complaint or a table that still lies within the file, and never a
// crash.
TEST_F(GgufFileTest, SurvivesRandomDamage) {
  std::mt19937 random(7);
  size_t header = bytes_.find("blk.0.ffn_down.weight") + 64;
  for (int round = 0; round < 600; ++round) {
    std::string damaged = bytes_;
    for (int i = 0; i < 1 + round % 3; ++i) {
      damaged[random() % header] =
          static_cast<char>(round % 2 == 0 ? random() : 0xff * (random() % 2));
    }
    WriteFile(path_, damaged);
    auto info = ReadGgufModel(path_);
    if (info.ok()) {
      EXPECT_LE(info->weight_bytes, damaged.size());
    }
  }
}

}  // namespace
}  // namespace portico::llama
