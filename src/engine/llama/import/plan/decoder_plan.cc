#include <fmt/format.h>

#include "engine/llama/import/plan/import_plan.h"
#include "engine/llama/import/plan/tensor_planner.h"

namespace portico::llama {
namespace {

// Scalings that libllama knows by name, with numbers that it can be told. YaRN's betas reach it
// through the context only, so they are left to Qwen3, which has no other way.
bool RopeKnownByName(const HfConfig& config) {
  const Rope& rope = config.rope;
  if (rope.scaling == Rope::Scaling::kYarn) {
    bool usual = rope.beta_fast == 32 && rope.beta_slow == 1;
    return rope.truncate && (usual || config.family == Family::kQwen3);
  }
  return rope.scaling == Rope::Scaling::kNone || rope.scaling == Rope::Scaling::kLinear;
}

// Qwen2 is Llama with biases on q, k and v. libllama's "qwen2" wants heads that fill the hidden
// size and takes no divisor a frequency; its "llama" has neither limit, at the price of reordered
// rows.
std::string LibllamaArchitecture(const HfConfig& config) {
  if (config.family == Family::kQwen3) return "qwen3";
  if (config.family != Family::kQwen2) return "llama";
  bool full_heads = config.heads * config.head_dim == config.hidden_size;
  return RopeKnownByName(config) && full_heads ? "qwen2" : "llama";
}

class DecoderPlanner {
 public:
  DecoderPlanner(const HfConfig& config, const WeightFiles& weights, ImportDtype dtype)
      : config_(config),
        weights_(weights),
        tensors_(weights, dtype),
        language_(config.top == Top::kLanguage),
        prefix_(language_ ? "model." : PrefixOf(weights, "embed_tokens.weight")),
        rope_divisors_(!RopeKnownByName(config)) {
    plan_.family = config.family;
    plan_.architecture = LibllamaArchitecture(config);
    reorder_ = plan_.architecture == "llama" ? config.head_dim : 0;
  }

  StatusOr<ImportPlan> Run() {
    if (language_) {
      tensors_.AddMatrix(Embeddings(), "token_embd.weight", config_.vocab_size,
                         config_.hidden_size);
    } else {
      const std::vector<float> zeros(static_cast<size_t>(config_.hidden_size));
      tensors_.AddValues("token_embd.weight", zeros, 1);
      tensors_.Expect(Embeddings());
      for (const char* head : {"lm_head.", "score.", "v_head."}) tensors_.Expect(head);
    }
    tensors_.AddVector(prefix_ + "norm.weight", "output_norm.weight", config_.hidden_size);
    if (language_) AddOutput();
    if (rope_divisors_) tensors_.AddValues("rope_freqs.weight", config_.rope_divisors);
    for (int64_t layer = 0; layer < config_.layers && tensors_.ok(); ++layer) AddLayer(layer);
    PORTICO_RETURN_IF_ERROR(tensors_.Finish(&plan_));
    NoteWindow();
    AddMetadata();
    return std::move(plan_);
  }

 private:
  std::string Embeddings() const { return prefix_ + "embed_tokens.weight"; }

  // Without an output tensor libllama uses the embeddings. A checkpoint may say "tied" and hold one
  // all the same: transformers then uses it, unless it equals the embeddings.
  void AddOutput() {
    const WeightTensor* output = weights_.Find("lm_head.weight");
    if (config_.tied) {
      tensors_.Expect("lm_head.weight");
      const WeightTensor* embeddings = weights_.Find(Embeddings());
      if (output == nullptr || embeddings == nullptr) return;
      StatusOr<bool> equal = weights_.Equal(*output, *embeddings);
      if (!equal.ok()) tensors_.Fail(equal.status());
      if (!equal.ok() || *equal) return;
    }
    tensors_.AddMatrix("lm_head.weight", "output.weight", config_.vocab_size, config_.hidden_size);
  }

  void AddLayer(int64_t layer) {
    const std::string from = fmt::format("{}layers.{}.", prefix_, layer);
    const std::string to = fmt::format("blk.{}.", layer);
    const int64_t hidden = config_.hidden_size;
    const int64_t inner = config_.intermediate_size;
    const int64_t q = config_.heads * config_.head_dim;
    const int64_t kv = config_.kv_heads * config_.head_dim;
    const bool bias = config_.qkv_bias;

    tensors_.AddVector(from + "input_layernorm.weight", to + "attn_norm.weight", hidden);
    tensors_.AddLinear(from + "self_attn.q_proj", to + "attn_q", q, hidden, bias, reorder_);
    tensors_.AddLinear(from + "self_attn.k_proj", to + "attn_k", kv, hidden, bias, reorder_);
    tensors_.AddLinear(from + "self_attn.v_proj", to + "attn_v", kv, hidden, bias);
    tensors_.AddLinear(from + "self_attn.o_proj", to + "attn_output", hidden, q,
                       config_.output_bias);
    if (config_.family == Family::kQwen3) {
      tensors_.AddVector(from + "self_attn.q_norm.weight", to + "attn_q_norm.weight",
                         config_.head_dim);
      tensors_.AddVector(from + "self_attn.k_norm.weight", to + "attn_k_norm.weight",
                         config_.head_dim);
    }
    tensors_.AddVector(from + "post_attention_layernorm.weight", to + "ffn_norm.weight", hidden);
    tensors_.AddLinear(from + "mlp.gate_proj", to + "ffn_gate", inner, hidden, config_.mlp_bias);
    tensors_.AddLinear(from + "mlp.up_proj", to + "ffn_up", inner, hidden, config_.mlp_bias);
    tensors_.AddLinear(from + "mlp.down_proj", to + "ffn_down", hidden, inner, config_.mlp_bias);
  }

  void NoteWindow() {
    if (config_.rope.max_context == 0) return;
    plan_.notes.push_back(
        fmt::format("The context is capped at {} tokens: beyond them this model's longrope "
                    "scaling rotates with other factors.",
                    config_.rope.max_context));
  }

  void Set(const std::string& key, PlannedValue value) {
    plan_.metadata.emplace_back(plan_.architecture + "." + key, std::move(value));
  }
  void SetInt(const std::string& key, int64_t value) { Set(key, static_cast<uint32_t>(value)); }
  void SetFloat(const std::string& key, double value) { Set(key, static_cast<float>(value)); }

  void AddMetadata() {
    SetInt("vocab_size", language_ ? config_.vocab_size : 1);
    SetInt("context_length", config_.max_position_embeddings);
    SetInt("embedding_length", config_.hidden_size);
    SetInt("block_count", config_.layers);
    SetInt("feed_forward_length", config_.intermediate_size);
    SetInt("attention.head_count", config_.heads);
    SetInt("attention.head_count_kv", config_.kv_heads);
    SetInt("attention.key_length", config_.head_dim);
    SetInt("attention.value_length", config_.head_dim);
    SetFloat("attention.layer_norm_rms_epsilon", config_.rms_norm_eps);
    if (config_.window > 0) SetInt("attention.sliding_window", config_.window);
    AddRopeMetadata();
  }

  void AddRopeMetadata() {
    const Rope& rope = config_.rope;
    SetInt("rope.dimension_count", config_.head_dim);
    SetFloat("rope.freq_base", rope.theta);
    if (rope.scaling == Rope::Scaling::kLinear) {
      Set("rope.scaling.type", "linear");
      SetFloat("rope.scaling.factor", rope.factor);
      return;
    }
    const bool yarn = rope.scaling == Rope::Scaling::kYarn && !rope_divisors_;
    Set("rope.scaling.type", yarn ? "yarn" : "none");
    if (rope.scaling == Rope::Scaling::kNone) return;
    if (rope_divisors_) {
      // Of cos and sin; the frequencies are divided by rope_freqs.weight.
      SetFloat("rope.scaling.attn_factor", rope.attention_factor);
      return;
    }
    SetFloat("rope.scaling.factor", rope.factor);
    SetInt("rope.scaling.original_context_length", rope.original_context);
    // libllama multiplies its own mscale by this.
    SetFloat("rope.scaling.attn_factor", rope.attention_factor / YarnAttentionFactor(rope.factor));
    // Not read by libllama for these architectures: LlamaModel::ContextParams() passes them on.
    SetFloat("rope.scaling.yarn_beta_fast", rope.beta_fast);
    SetFloat("rope.scaling.yarn_beta_slow", rope.beta_slow);
  }

  const HfConfig& config_;
  const WeightFiles& weights_;
  TensorPlanner tensors_;
  const bool language_;
  const std::string prefix_;
  // The scaling is written as a divisor for each frequency (rope_freqs.weight), which only
  // libllama's "llama" takes; else libllama knows it by name.
  const bool rope_divisors_;
  int64_t reorder_ = 0;
  ImportPlan plan_;
};

}  // namespace

StatusOr<ImportPlan> PlanImport(const HfConfig& config, const WeightFiles& weights,
                                ImportDtype dtype) {
  return DecoderPlanner(config, weights, dtype).Run();
}

}  // namespace portico::llama
