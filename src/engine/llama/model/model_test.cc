#include "engine/llama/model/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "engine/llama/import/reference_for_test.h"
#include "engine/llama/import/test_model_for_test.h"
#include "engine/llama/model/logits_for_test.h"

namespace portico::llama {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ModelTest : public testing::Test {
 protected:
  StatusOr<std::unique_ptr<LlamaModel>> Load(const std::string& dtype = "float32",
                                             const std::string& quantization = "") {
    ModelOptions options;
    options.path = folder_.path();
    options.dtype = dtype;
    options.quantization = quantization;
    options.threads = 2;
    return LlamaModel::Load(options, nullptr);
  }

  // Largest difference from the plain implementation over a prompt.
  float Difference(const TestModel& model, const std::string& dtype = "float32",
                   const std::string& quantization = "") {
    auto loaded = Load(dtype, quantization);
    if (!loaded.ok()) {
      ADD_FAILURE() << MessageOf(loaded.status());
      return INFINITY;
    }
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 23; ++i) tokens.push_back(i * 37 % (*loaded)->info().vocab_size);
    auto expected = ReferenceModel(model).Logits(tokens);
    auto actual = PromptLogits(**loaded, tokens);
    float most = 0;
    for (size_t i = 0; i < tokens.size(); ++i) {
      most = std::max(most, MaxDifference(actual[i], expected[i]));
    }
    return most;
  }

  TempFolder cache_{"XDG_CACHE_HOME"};
  TempFolder folder_;
};

struct Shape {
  const char* name;
  const char* type;
  JsonObject changes;
};

const Shape kShapes[] = {
    {"llama", "llama", {}},
    {"llama_old_defaults",
     "llama",
     {{"num_key_value_heads", nullptr}, {"head_dim", nullptr}, {"rope_theta", 5000.0}}},
    {"llama_all_biases", "llama", {{"attention_bias", true}, {"mlp_bias", true}}},
    {"llama_own_head_dim", "llama", {{"head_dim", 24}}},
    {"llama_three_heads",
     "llama",
     {{"hidden_size", 60},
      {"num_attention_heads", 3},
      {"num_key_value_heads", 3},
      {"vocab_size", 37}}},
    {"llama_odd_sizes",
     "llama",
     {{"hidden_size", 70},
      {"num_attention_heads", 5},
      {"num_key_value_heads", 1},
      {"intermediate_size", 77},
      {"vocab_size", 1013}}},
    {"llama_deep", "llama", {{"num_hidden_layers", 9}, {"hidden_size", 32}}},
    {"llama_tied", "llama", {{"tie_word_embeddings", true}}},
    {"llama_yarn_own_betas",
     "llama",
     {{"rope_scaling", JsonObject{{"type", "yarn"},
                                  {"factor", 4.0},
                                  {"original_max_position_embeddings", 64},
                                  {"beta_fast", 8},
                                  {"beta_slow", 2},
                                  {"attention_factor", 0.9}}}}},
    {"llama_yarn_fractional",
     "llama",
     {{"rope_scaling", JsonObject{{"rope_type", "yarn"},
                                  {"factor", 4.0},
                                  {"truncate", false},
                                  {"original_max_position_embeddings", 64}}}}},
    {"llama_longrope",
     "llama",
     {{"original_max_position_embeddings", 64},
      {"rope_scaling",
       JsonObject{{"type", "longrope"},
                  {"short_factor", JsonArray{1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0}},
                  {"long_factor", JsonArray{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}}}}}},
    {"llama_dynamic",
     "llama",
     {{"rope_scaling", JsonObject{{"type", "dynamic"}, {"factor", 2.0}}}}},
    {"mistral", "mistral", {{"head_dim", 32}}},
    {"qwen2", "qwen2", {}},
    {"qwen2_own_head_dim", "qwen2", {{"head_dim", 32}}},
    {"qwen2_llama3_rope",
     "qwen2",
     {{"rope_parameters", JsonObject{{"rope_type", "llama3"},
                                     {"rope_theta", 10000.0},
                                     {"factor", 8.0},
                                     {"low_freq_factor", 1.0},
                                     {"high_freq_factor", 4.0},
                                     {"original_max_position_embeddings", 64}}}}},
    {"qwen2_yarn",
     "qwen2",
     {{"rope_scaling",
       JsonObject{{"type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 64}}}}},
    {"qwen3", "qwen3", {{"num_key_value_heads", 4}}},
    {"qwen3_small_heads", "qwen3", {{"hidden_size", 50}, {"num_attention_heads", 6}}},
    {"qwen3_yarn_own_betas",
     "qwen3",
     {{"rope_scaling", JsonObject{{"rope_type", "yarn"},
                                  {"factor", 4.0},
                                  {"original_max_position_embeddings", 64},
                                  {"beta_fast", 8},
                                  {"beta_slow", 2},
                                  {"attention_factor", 0.9}}}}},
};

class ShapeTest : public ModelTest, public testing::WithParamInterface<Shape> {};

TEST_P(ShapeTest, GivesTheLogitsOfAPlainImplementation) {
  TestModel model = RandomModel(SmallConfig(GetParam().type, GetParam().changes));
  model.Write(folder_.path());
  float difference = Difference(model);
  EXPECT_LE(difference, 2e-4f);
  RecordProperty("max_difference", std::to_string(difference));
}

INSTANTIATE_TEST_SUITE_P(Models, ShapeTest, testing::ValuesIn(kShapes),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(ModelTest, StoredTypeAndShardsDoNotChangeTheLogits) {
  TestModel model = RandomModel(SmallConfig("llama"), 5);
  for (const char* dtype : {"F32", "BF16", "F16"}) {
    for (int shards : {1, 3}) {
      std::filesystem::remove_all(folder_.path());
      std::filesystem::create_directory(folder_.path());
      model.Write(folder_.path(), dtype, shards);
      EXPECT_LE(Difference(model), 2e-4f) << dtype << " in " << shards;
    }
  }
}

TEST_F(ModelTest, KeepsTheStoredTypeUnlessToldOtherwise) {
  RandomModel(SmallConfig("qwen3")).Write(folder_.path(), "BF16");
  auto model = Load("auto");
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_EQ((*model)->info().dtype, "bfloat16");
  EXPECT_FALSE((*model)->info().float32);
  EXPECT_EQ((*model)->info().kv_bytes_per_cell, 2 * 2 * (16 + 16) * 2);
  model = Load("float32");
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_EQ((*model)->info().dtype, "float32");
  EXPECT_TRUE((*model)->info().float32);
  EXPECT_EQ((*model)->info().kv_bytes_per_cell, 2 * 2 * (16 + 16) * 4);
}

TEST_F(ModelTest, QuantizedModelsGiveNearLogits) {
  TestModel model = RandomModel(
      SmallConfig("llama", {{"hidden_size", 256}, {"head_dim", 64}, {"intermediate_size", 512}}));
  model.Write(folder_.path(), "BF16");
  auto exact = Load("float32");
  ASSERT_TRUE(exact.ok()) << MessageOf(exact.status());
  std::vector<int32_t> tokens = {1, 2, 3, 50, 100};
  auto expected = PromptLogits(**exact, tokens);
  float size = 0;
  for (const auto& row : expected)
    size = std::max(size, MaxDifference(row, std::vector<float>(row.size())));
  for (const auto& [name, share] : {std::pair("q8_0", 0.05f), std::pair("Q6_K", 0.1f),
                                    std::pair("q4_k_m", 0.4f), std::pair("q4_0", 0.5f)}) {
    auto quantized = Load("auto", name);
    ASSERT_TRUE(quantized.ok()) << MessageOf(quantized.status());
    auto actual = PromptLogits(**quantized, tokens);
    float most = 0;
    for (size_t i = 0; i < tokens.size(); ++i)
      most = std::max(most, MaxDifference(actual[i], expected[i]));
    EXPECT_LE(most / size, share) << name;
    EXPECT_GT(most, 0) << name;
    EXPECT_LT((*quantized)->info().size_bytes, (*exact)->info().size_bytes / 3) << name;
  }
  EXPECT_EQ((*Load("auto", "Q8_0"))->info().dtype, "q8_0");
  EXPECT_THAT(std::string(MessageOf(Load("auto", "q9").status())),
              AllOf(HasSubstr("q9"), HasSubstr("q4_k_m")));
}

// A config that says "tied" beside an output tensor of its own: transformers uses the tensor,
// unless it is the embeddings again.
TEST_F(ModelTest, AnOutputTensorWinsOverTiedEmbeddings) {
  TestModel model = RandomModel(SmallConfig("qwen2", {{"tie_word_embeddings", true}}));
  TestModel untied = RandomModel(SmallConfig("qwen2"), 9);
  model.Write(folder_.path());
  int64_t tied_bytes = (*Load())->info().size_bytes;
  model.tensors["lm_head.weight"] = model.tensors["model.embed_tokens.weight"];
  model.Write(folder_.path());
  EXPECT_LE(Difference(model), 2e-4f);
  EXPECT_EQ((*Load())->info().size_bytes, tied_bytes);
  model.tensors["lm_head.weight"] = untied.tensors["lm_head.weight"];
  model.Write(folder_.path());
  EXPECT_LE(Difference(model), 2e-4f);
  EXPECT_GT((*Load())->info().size_bytes, tied_bytes);
}

TEST_F(ModelTest, TellsWhatTheFolderSaysAboutGenerating) {
  RandomModel(SmallConfig("qwen3", {{"eos_token_id", 7}})).Write(folder_.path());
  auto model = Load();
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  const ModelInfo& plain = (*model)->info();
  EXPECT_THAT(plain.eos_token_ids, ElementsAre(7));
  EXPECT_FALSE(plain.defaults.temperature);
  EXPECT_EQ(plain.architecture, "qwen3");
  EXPECT_EQ(plain.vocab_size, 101);
  EXPECT_EQ(plain.hidden_size, 64);
  EXPECT_EQ(plain.layers, 2);
  EXPECT_EQ(plain.context_length, 256);
  EXPECT_EQ(plain.tokenizer_path, folder_.path());
  EXPECT_THAT(plain.notes, IsEmpty());

  WriteFile(folder_.File("generation_config.json"),
            R"({"eos_token_id":[3,5,500],"temperature":0.6,"top_p":0.95,"top_k":20,"min_p":0.1,
                "repetition_penalty":1.1,"do_sample":true})");
  model = Load();
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  const ModelInfo& info = (*model)->info();
  EXPECT_THAT(info.eos_token_ids, ElementsAre(3, 5, 7));
  EXPECT_THAT(info.notes, ElementsAre(HasSubstr("outside the vocabulary")));
  EXPECT_FLOAT_EQ(*info.defaults.temperature, 0.6f);
  EXPECT_FLOAT_EQ(*info.defaults.top_p, 0.95f);
  EXPECT_EQ(*info.defaults.top_k, 20);
  EXPECT_FLOAT_EQ(*info.defaults.min_p, 0.1f);
  EXPECT_FLOAT_EQ(*info.defaults.repetition_penalty, 1.1f);

  WriteFile(folder_.File("generation_config.json"), R"({"temperature":0.6,"do_sample":false})");
  EXPECT_FALSE((*Load())->info().defaults.temperature);
  WriteFile(folder_.File("generation_config.json"), R"({"temperature":"hot"})");
  EXPECT_THAT(std::string(MessageOf(Load().status())),
              HasSubstr("generation_config.json: temperature"));
}

TEST_F(ModelTest, CapsTheContextAtAWindowThatLibllamaIgnores) {
  RandomModel(SmallConfig("mistral", {{"sliding_window", 48}})).Write(folder_.path());
  auto model = Load();
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_EQ((*model)->info().context_length, 48);
  EXPECT_EQ((*model)->info().train_context_length, 256);
  EXPECT_EQ((*model)->info().architecture, "mistral");
  EXPECT_THAT((*model)->info().notes,
              ElementsAre(AllOf(HasSubstr("capped at 48"), HasSubstr("256"))));

  // The same file given as a GGUF of somebody else's.
  ModelOptions options;
  options.path = (*model)->info().file;
  auto again = LlamaModel::Load(options, nullptr);
  ASSERT_TRUE(again.ok()) << MessageOf(again.status());
  EXPECT_EQ((*again)->info().context_length, 48);
  EXPECT_EQ((*again)->info().tokenizer_path, options.path);

  options.context_length = 49;
  EXPECT_EQ(LlamaModel::Load(options, nullptr).status().code(), StatusCode::kInvalidArgument);
  options.context_length = 20;
  again = LlamaModel::Load(options, nullptr);
  ASSERT_TRUE(again.ok()) << MessageOf(again.status());
  EXPECT_EQ((*again)->info().context_length, 20);
}

TEST_F(ModelTest, AWindowThatNoLayerUsesChangesNothing) {
  RandomModel(SmallConfig("qwen2", {{"sliding_window", 48}, {"use_sliding_window", false}}))
      .Write(folder_.path());
  EXPECT_EQ((*Load())->info().context_length, 256);
  RandomModel(
      SmallConfig("qwen2",
                  {{"sliding_window", 48}, {"use_sliding_window", true}, {"max_window_layers", 2}}))
      .Write(folder_.path());
  EXPECT_EQ((*Load())->info().context_length, 256);
  RandomModel(
      SmallConfig("qwen2",
                  {{"sliding_window", 48}, {"use_sliding_window", true}, {"max_window_layers", 1}}))
      .Write(folder_.path());
  EXPECT_EQ((*Load())->info().context_length, 48);
}

TEST_F(ModelTest, CapsLongropeAtItsOriginalContext) {
  TestModel model = RandomModel(SmallConfig(kShapes[10].type, kShapes[10].changes));
  model.Write(folder_.path());
  auto loaded = Load();
  ASSERT_TRUE(loaded.ok()) << MessageOf(loaded.status());
  EXPECT_EQ((*loaded)->info().context_length, 64);
  EXPECT_THAT((*loaded)->info().notes, ElementsAre(HasSubstr("longrope")));
}

TEST_F(ModelTest, SaysWhichTensorsItLeavesOut) {
  TestModel model = RandomModel(SmallConfig("llama"));
  model.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {{8}, std::vector<float>(8)};
  model.Write(folder_.path());
  EXPECT_THAT((*Load())->info().notes, IsEmpty());
  model.tensors["model.layers.0.self_attn.q_proj.bias"] = {{64}, std::vector<float>(64)};
  model.Write(folder_.path());
  EXPECT_THAT((*Load())->info().notes,
              ElementsAre(AllOf(HasSubstr("1 tensors"), HasSubstr("q_proj.bias"))));
}

TEST_F(ModelTest, ReportsEachStage) {
  RandomModel(SmallConfig("llama")).Write(folder_.path());
  std::set<std::string> stages;
  ModelOptions options;
  options.path = folder_.path();
  options.quantization = "q8_0";
  auto model = LlamaModel::Load(options, [&](std::string_view stage, double fraction) {
    stages.emplace(stage);
    EXPECT_GE(fraction, 0);
    EXPECT_LE(fraction, 1);
  });
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  EXPECT_THAT(stages, ElementsAre("importing", "loading", "quantizing", "reading weights"));
}

TEST_F(ModelTest, RefusesOptionsThatDoNotFit) {
  RandomModel(SmallConfig("llama")).Write(folder_.path());
  EXPECT_THAT(std::string(MessageOf(Load("int4").status())), HasSubstr("'int4'"));
  auto model = Load();
  ASSERT_TRUE(model.ok()) << MessageOf(model.status());
  ModelOptions options;
  options.path = (*model)->info().file;
  options.quantization = "q8_0";
  EXPECT_EQ(LlamaModel::Load(options, nullptr).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace portico::llama
