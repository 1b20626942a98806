// What steps compute of models that are more than plain decoders. On random GGUF files.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "engine/llama/generation/model_runner.h"
#include "engine/llama/import/temp_folder_for_test.h"
#include "engine/llama/model/gguf_for_test.h"
#include "engine/llama/model/logits_for_test.h"

namespace portico::llama {
namespace {

// Every second layer looks back 16 tokens, and each head has a sink. As gpt-oss, with experts.
void WriteWithSinks(const std::string& path) {
  constexpr uint32_t kHidden = 64, kHead = 16, kHeads = 4, kKeyHeads = 2, kInner = 32, kExperts = 4;
  constexpr uint32_t kVocabulary = 101;
  RandomGguf file("gpt-oss", kVocabulary, kHidden);
  file.Set("feed_forward_length", kInner);
  file.Set("expert_feed_forward_length", kInner);
  file.Set("expert_count", kExperts);
  file.Set("expert_used_count", 2u);
  file.Set("attention.head_count", kHeads);
  file.Set("attention.head_count_kv", kKeyHeads);
  file.Set("attention.key_length", kHead);
  file.Set("attention.value_length", kHead);
  file.Set("attention.sliding_window", 16u);
  file.Set("attention.layer_norm_rms_epsilon", 1e-5f);
  file.Set("rope.freq_base", 1e4f);
  file.Set("rope.dimension_count", kHead);
  file.Add("output.weight", {kHidden, kVocabulary});
  file.AddToLayers("attn_norm.weight", {kHidden});
  file.AddToLayers("post_attention_norm.weight", {kHidden});
  file.AddToLayers("attn_q.weight", {kHidden, kHeads * kHead});
  file.AddToLayers("attn_q.bias", {kHeads * kHead});
  for (const std::string name : {"attn_k", "attn_v"}) {
    file.AddToLayers(name + ".weight", {kHidden, kKeyHeads * kHead});
    file.AddToLayers(name + ".bias", {kKeyHeads * kHead});
  }
  file.AddToLayers("attn_output.weight", {kHeads * kHead, kHidden});
  file.AddToLayers("attn_output.bias", {kHidden});
  file.AddToLayers("attn_sinks.weight", {kHeads});
  file.AddToLayers("ffn_gate_inp.weight", {kHidden, kExperts});
  file.AddToLayers("ffn_gate_inp.bias", {kExperts});
  for (const std::string name : {"ffn_gate_exps", "ffn_up_exps"}) {
    file.AddToLayers(name + ".weight", {kHidden, kInner, kExperts});
    file.AddToLayers(name + ".bias", {kInner, kExperts});
  }
  file.AddToLayers("ffn_down_exps.weight", {kInner, kHidden, kExperts});
  file.AddToLayers("ffn_down_exps.bias", {kHidden, kExperts});
  file.Write(path);
}

// A state that takes each token in and cannot give one back. As Mamba.
void WriteRecurrent(const std::string& path) {
  constexpr uint32_t kHidden = 64, kInner = 128, kState = 16, kRank = 4, kKernel = 4;
  RandomGguf file("mamba", 101, kHidden);
  file.Set("feed_forward_length", 0u);
  file.Set("attention.head_count", 0u);
  file.Set("attention.layer_norm_rms_epsilon", 1e-5f);
  file.Set("ssm.conv_kernel", kKernel);
  file.Set("ssm.inner_size", kInner);
  file.Set("ssm.state_size", kState);
  file.Set("ssm.time_step_rank", kRank);
  file.AddToLayers("attn_norm.weight", {kHidden});
  file.AddToLayers("ssm_in.weight", {kHidden, 2 * kInner});
  file.AddToLayers("ssm_conv1d.weight", {kKernel, kInner});
  file.AddToLayers("ssm_conv1d.bias", {kInner});
  file.AddToLayers("ssm_x.weight", {kInner, kRank + 2 * kState});
  file.AddToLayers("ssm_dt.weight", {kRank, kInner});
  file.AddToLayers("ssm_dt.bias", {kInner});
  file.AddToLayers("ssm_a", {kState, kInner});
  file.AddToLayers("ssm_d", {kInner});
  file.AddToLayers("ssm_out.weight", {kInner, kHidden});
  file.Write(path);
}

std::vector<TokenId> SomeTokens(int32_t count, int32_t step) {
  std::vector<TokenId> tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back((i * step + 3) % 101);
  return tokens;
}

class ModelKindsTest : public testing::Test {
 protected:
  // `is_embedding`: of a kind that is not served otherwise.
  void Load(const std::string& path, bool is_embedding) {
    ModelOptions options;
    options.path = path;
    options.is_embedding = is_embedding;
    auto model = LlamaModel::Load(options, nullptr);
    ASSERT_TRUE(model.ok()) << MessageOf(model.status());
    model_ = *std::move(model);
  }

  void Start(bool own_attention) {
    RunnerOptions options;
    options.cells = 256;
    options.max_sequences_a_step = 2;
    options.own_attention = own_attention;
    auto runner = ModelRunner::Create(*model_, options);
    ASSERT_TRUE(runner.ok()) << MessageOf(runner.status());
    runner_ = *std::move(runner);
  }

  // Logits of the last token; so many tokens a step.
  std::vector<float> LastRow(const std::vector<TokenId>& tokens, int32_t sequence, int32_t chunk) {
    ScheduledRequest request;
    request.tokens = tokens;
    request.branch.sequence = sequence;
    const auto size = static_cast<int32_t>(tokens.size());
    for (int32_t begin = 0; begin < size; begin += chunk) {
      const int32_t count = std::min(chunk, size - begin);
      Step step;
      step.chunks.push_back({&request, begin, count, 1, begin + count == size});
      const Status status = runner_->Run(step, std::atomic<bool>(false));
      EXPECT_TRUE(status.ok()) << MessageOf(status);
      if (!status.ok()) return {};
    }
    const auto row = runner_->Logits(0);
    return {row.begin(), row.end()};
  }

  TempFolder folder_;
  std::unique_ptr<LlamaModel> model_;
  std::unique_ptr<ModelRunner> runner_;
};

TEST_F(ModelKindsTest, SinksWindowsAndExpertsGiveTheLogitsOfLibllamasAttention) {
  WriteWithSinks(folder_.File("sinks.gguf"));
  Load(folder_.File("sinks.gguf"), /*is_embedding=*/false);
  const std::vector<TokenId> tokens = SomeTokens(60, 7);
  Start(/*own_attention=*/false);
  const std::vector<float> theirs = LastRow(tokens, 0, 60);
  ASSERT_EQ(runner_->own_layers(), 0);
  std::vector<float> first;
  for (const int32_t chunk : {60, 7, 1}) {
    Start(/*own_attention=*/true);
    LastRow(SomeTokens(50, 11), 1, 20);  // what others leave
    const std::vector<float> ours = LastRow(tokens, 0, chunk);
    EXPECT_EQ(runner_->own_layers(), 2);
    EXPECT_LT(MaxDifference(ours, theirs), 1e-4f) << chunk;
    if (first.empty()) first = ours;
    EXPECT_EQ(ours, first) << chunk;
  }
  EXPECT_EQ(runner_->unshared_because(), "the model has sliding windows");
}

// The token that fills up a step stayed in the state, of which nothing can be taken out again.
TEST_F(ModelKindsTest, WhatCannotBeCutIsNeitherFilledUpNorShared) {
  WriteRecurrent(folder_.File("recurrent.gguf"));
  Load(folder_.File("recurrent.gguf"), /*is_embedding=*/true);
  const std::vector<TokenId> tokens = SomeTokens(12, 7);
  Start(/*own_attention=*/true);
  EXPECT_EQ(runner_->unshared_because(), "the model's memory cannot be cut");
  const std::vector<float> at_once = LastRow(tokens, 0, 12);
  EXPECT_LT(MaxDifference(LastRow(tokens, 1, 1), at_once), 1e-4f);
}

}  // namespace
}  // namespace portico::llama
