#include "engine/llama/import/config/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/llama/import/test_model_for_test.h"

namespace portico::llama {
namespace {

using testing::AllOf;
using testing::HasSubstr;

HfConfig Parse(const Json& config) {
  auto parsed = ParseHfConfig(config.Dump(), "config.json");
  EXPECT_TRUE(parsed.ok()) << MessageOf(parsed.status());
  return parsed.ok() ? *parsed : HfConfig();
}

std::string Complaint(const Json& config) {
  return std::string(MessageOf(ParseHfConfig(config.Dump(), "config.json").status()));
}

TEST(HfConfigTest, AbsentFieldsHaveTheDefaultsOfTransformers) {
  HfConfig llama = Parse(JsonObject{{"architectures", JsonArray{"LlamaForCausalLM"}}});
  EXPECT_EQ(llama.vocab_size, 32000);
  EXPECT_EQ(llama.intermediate_size, 11008);
  EXPECT_EQ(llama.kv_heads, 32);
  EXPECT_EQ(llama.head_dim, 128);
  EXPECT_EQ(llama.max_position_embeddings, 2048);
  EXPECT_DOUBLE_EQ(llama.rms_norm_eps, 1e-6);
  EXPECT_DOUBLE_EQ(llama.rope.theta, 10000);
  EXPECT_FALSE(llama.tied);
  EXPECT_EQ(llama.window, 0);

  HfConfig mistral = Parse(JsonObject{{"model_type", "mistral"}});
  EXPECT_EQ(mistral.kv_heads, 8);
  EXPECT_EQ(mistral.window, 4096);
  EXPECT_EQ(Parse(JsonObject{{"model_type", "mistral"}, {"num_key_value_heads", nullptr}}).kv_heads,
            32);

  HfConfig qwen2 =
      Parse(JsonObject{{"model_type", "qwen2"}, {"hidden_size", 512}, {"num_attention_heads", 64}});
  EXPECT_EQ(qwen2.vocab_size, 151936);
  EXPECT_EQ(qwen2.head_dim, 8);
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias);
  EXPECT_EQ(Parse(JsonObject{{"model_type", "qwen3"}, {"hidden_size", 512}}).head_dim, 128);
}

TEST(HfConfigTest, KeyValueHeadsDefaultToAllHeadsInLlama) {
  EXPECT_EQ(Parse(JsonObject{{"model_type", "llama"}, {"num_attention_heads", 16}}).kv_heads, 16);
}

TEST(HfConfigTest, BothSpellingsOfRopeMeanTheSame) {
  JsonObject scaling = {{"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 64}};
  JsonObject older = scaling, newer = scaling;
  older.emplace_back("type", "llama3");
  newer.emplace_back("rope_type", "llama3");
  newer.emplace_back("rope_theta", 50000.0);
  HfConfig a = Parse(SmallConfig("llama", {{"rope_theta", 50000.0}, {"rope_scaling", older}}));
  HfConfig b = Parse(SmallConfig("llama", {{"rope_parameters", newer}}));
  EXPECT_EQ(a.rope_divisors, b.rope_divisors);
  EXPECT_EQ(a.rope.theta, b.rope.theta);
  EXPECT_FLOAT_EQ(a.rope_divisors.front(), 1);
  EXPECT_FLOAT_EQ(a.rope_divisors.back(), 8);
}

TEST(HfConfigTest, NamesWhatCanBeImported) {
  EXPECT_THAT(Complaint(JsonObject{{"architectures", JsonArray{"GPT2LMHeadModel"}},
                                   {"model_type", "llama"}}),
              AllOf(HasSubstr("'GPT2LMHeadModel'"), HasSubstr("LlamaForCausalLM"),
                    HasSubstr("MistralForCausalLM"), HasSubstr("Qwen2ForCausalLM"),
                    HasSubstr("Qwen3ForCausalLM"), HasSubstr("GGUF")));
  EXPECT_THAT(Complaint(JsonObject{}), HasSubstr("cannot be imported"));
}

TEST(HfConfigTest, RefusesWhatItCannotHonour) {
  auto with = [](const char* type, const char* key, Json value) {
    return Complaint(SmallConfig(type, {{key, std::move(value)}}));
  };
  EXPECT_THAT(with("llama", "hidden_act", "gelu"), HasSubstr("hidden_act 'gelu'"));
  EXPECT_THAT(with("llama", "quantization_config", JsonObject{}), HasSubstr("quantization_config"));
  EXPECT_THAT(with("llama", "partial_rotary_factor", 0.5), HasSubstr("partial_rotary_factor"));
  EXPECT_THAT(with("qwen3", "attention_bias", true), HasSubstr("attention_bias"));
  EXPECT_THAT(with("llama", "rope_scaling", JsonObject{{"type", "mrope"}}), HasSubstr("'mrope'"));
  EXPECT_THAT(
      with("qwen3", "rope_scaling",
           JsonObject{
               {"type", "llama3"}, {"factor", 2}, {"low_freq_factor", 1}, {"high_freq_factor", 4}}),
      HasSubstr("Qwen3"));
  EXPECT_THAT(with("llama", "rope_scaling", JsonObject{{"type", "llama3"}, {"factor", 2}}),
              HasSubstr("low_freq_factor is missing"));
  EXPECT_THAT(with("llama", "rope_scaling",
                   JsonObject{{"type", "longrope"}, {"short_factor", JsonArray{1.0}}}),
              HasSubstr("has 1 values"));
}

TEST(HfConfigTest, RefusesImpossibleValues) {
  auto with = [](const char* key, Json value) {
    return Complaint(SmallConfig("llama", {{key, std::move(value)}}));
  };
  EXPECT_THAT(with("num_hidden_layers", 0), HasSubstr("config.json: num_hidden_layers"));
  EXPECT_THAT(with("num_hidden_layers", 513), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(with("hidden_size", "64"), HasSubstr("hidden_size must be a whole number"));
  EXPECT_THAT(with("hidden_size", 64.5), HasSubstr("hidden_size"));
  EXPECT_THAT(with("vocab_size", -1), HasSubstr("vocab_size"));
  EXPECT_THAT(with("num_key_value_heads", 3), HasSubstr("multiple of num_key_value_heads"));
  EXPECT_THAT(with("head_dim", 15), HasSubstr("head_dim (15) must be even"));
  EXPECT_THAT(with("num_attention_heads", 100), HasSubstr("head_dim (0)"));
  EXPECT_THAT(with("rms_norm_eps", 0), HasSubstr("rms_norm_eps"));
  EXPECT_THAT(with("rope_theta", -5), HasSubstr("rope_theta"));
  EXPECT_THAT(with("tie_word_embeddings", 1), HasSubstr("true or false"));
  EXPECT_THAT(with("rope_scaling", JsonArray{}), HasSubstr("rope_scaling must be an object"));
  EXPECT_THAT(with("rope_scaling", JsonObject{{"type", "linear"}, {"factor", 0}}),
              HasSubstr("rope_scaling.factor"));
  EXPECT_THAT(std::string(MessageOf(ParseHfConfig("{", "config.json").status())),
              HasSubstr("is not JSON"));
  EXPECT_THAT(std::string(MessageOf(ParseHfConfig("[]", "config.json").status())),
              HasSubstr("not a JSON object"));
}

TEST(HfConfigTest, SlidingWindowsCountOnlyWhereALayerUsesThem) {
  auto window = [](const char* type, JsonObject changes) {
    return Parse(SmallConfig(type, changes)).window;
  };
  EXPECT_EQ(window("mistral", {{"sliding_window", 48}}), 48);
  EXPECT_EQ(window("mistral", {{"sliding_window", nullptr}}), 0);
  EXPECT_EQ(window("qwen2", {{"sliding_window", 48}}), 0);
  EXPECT_EQ(window("qwen2", {{"sliding_window", 48}, {"use_sliding_window", true}}), 0);
  EXPECT_EQ(
      window("qwen2",
             {{"sliding_window", 48}, {"use_sliding_window", true}, {"max_window_layers", 1}}),
      48);
  EXPECT_EQ(window("qwen3", {{"sliding_window", 48},
                             {"use_sliding_window", true},
                             {"layer_types", JsonArray{"full_attention", "sliding_attention"}}}),
            48);
}

}  // namespace
}  // namespace portico::llama
