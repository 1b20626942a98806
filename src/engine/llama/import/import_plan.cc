#include "engine/llama/import/import_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/llama/import/file.h"

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

class Planner {
 public:
  Planner(const HfConfig& config, const WeightFiles& weights, ImportDtype dtype)
      : weights_(weights), dtype_(dtype) {
    plan_.config = config;
    plan_.architecture = LibllamaArchitecture(config);
    plan_.rope_divisors = !RopeKnownByName(config);
    reorder_ = plan_.architecture == "llama" ? config.head_dim : 0;
  }

  StatusOr<ImportPlan> Run() {
    const HfConfig& config = plan_.config;
    AddMatrix("model.embed_tokens.weight", "token_embd.weight", config.vocab_size,
              config.hidden_size);
    AddVector("model.norm.weight", "output_norm.weight", config.hidden_size);
    AddOutput();
    AddRopeDivisors();
    for (int64_t layer = 0; layer < config.layers && failure_.ok(); ++layer) AddLayer(layer);
    PORTICO_RETURN_IF_ERROR(failure_);
    NoteUnused();
    NoteWindow();
    return std::move(plan_);
  }

 private:
  void AddMatrix(const std::string& from, const std::string& to, int64_t rows, int64_t columns,
                 int64_t head_rows = 0) {
    PlannedTensor tensor{to, columns, rows, GGML_TYPE_F32, nullptr, {}, head_rows};
    Add(from, {rows, columns}, std::move(tensor));
  }

  void AddVector(const std::string& from, const std::string& to, int64_t size,
                 int64_t head_rows = 0) {
    Add(from, {size}, PlannedTensor{to, size, 0, GGML_TYPE_F32, nullptr, {}, head_rows});
  }

  void Add(const std::string& from, const std::vector<int64_t>& shape, PlannedTensor tensor) {
    if (!failure_.ok()) return;
    used_.insert(from);
    tensor.source = weights_.Find(from);
    if (tensor.source == nullptr) {
      failure_ =
          BadFile(weights_.files().front().path(), fmt::format("the tensor {} is missing", from));
      return;
    }
    const std::string& path = weights_.FileOf(*tensor.source).path();
    if (tensor.source->shape != shape) {
      WeightTensor wanted;
      wanted.shape = shape;
      failure_ =
          BadFile(path, fmt::format("tensor {} has the shape {}, but config.json makes it {}", from,
                                    tensor.source->ShapeText(), wanted.ShapeText()));
      return;
    }
    const std::string& dtype = tensor.source->dtype;
    if (dtype != "F32" && dtype != "F16" && dtype != "BF16") {
      failure_ = BadFile(
          path, fmt::format("tensor {} is {}; F32, F16 and BF16 can be imported", from, dtype));
      return;
    }
    if (tensor.rows != 0) tensor.type = MatrixType(dtype);
    plan_.tensors.push_back(std::move(tensor));
  }

  ggml_type MatrixType(const std::string& dtype) const {
    if (dtype_ == ImportDtype::kFloat32) return GGML_TYPE_F32;
    if (dtype_ == ImportDtype::kBfloat16) return GGML_TYPE_BF16;
    return dtype == "F32" ? GGML_TYPE_F32 : dtype == "F16" ? GGML_TYPE_F16 : GGML_TYPE_BF16;
  }

  // Without an output tensor libllama uses the embeddings. A checkpoint may say "tied" and hold one
  // all the same: transformers then uses it, unless it equals the embeddings.
  void AddOutput() {
    const WeightTensor* output = weights_.Find("lm_head.weight");
    if (plan_.config.tied) {
      used_.insert("lm_head.weight");
      const WeightTensor* embeddings = weights_.Find("model.embed_tokens.weight");
      if (output == nullptr || embeddings == nullptr) return;
      StatusOr<bool> equal = weights_.Equal(*output, *embeddings);
      if (!equal.ok()) failure_ = equal.status();
      if (!equal.ok() || *equal) return;
    }
    AddMatrix("lm_head.weight", "output.weight", plan_.config.vocab_size, plan_.config.hidden_size);
  }

  void AddRopeDivisors() {
    if (!plan_.rope_divisors) return;
    PlannedTensor tensor;
    tensor.name = "rope_freqs.weight";
    tensor.values = plan_.config.rope_divisors;
    tensor.columns = static_cast<int64_t>(tensor.values.size());
    plan_.tensors.push_back(std::move(tensor));
  }

  void AddLayer(int64_t layer) {
    const HfConfig& config = plan_.config;
    const std::string from = fmt::format("model.layers.{}.", layer);
    const std::string to = fmt::format("blk.{}.", layer);
    const int64_t hidden = config.hidden_size;
    const int64_t inner = config.intermediate_size;
    const int64_t q = config.heads * config.head_dim;
    const int64_t kv = config.kv_heads * config.head_dim;

    AddVector(from + "input_layernorm.weight", to + "attn_norm.weight", hidden);
    AddLinear(from + "self_attn.q_proj", to + "attn_q", q, hidden, config.qkv_bias, reorder_);
    AddLinear(from + "self_attn.k_proj", to + "attn_k", kv, hidden, config.qkv_bias, reorder_);
    AddLinear(from + "self_attn.v_proj", to + "attn_v", kv, hidden, config.qkv_bias);
    AddLinear(from + "self_attn.o_proj", to + "attn_output", hidden, q, config.output_bias);
    if (config.family == Family::kQwen3) {
      AddVector(from + "self_attn.q_norm.weight", to + "attn_q_norm.weight", config.head_dim);
      AddVector(from + "self_attn.k_norm.weight", to + "attn_k_norm.weight", config.head_dim);
    }
    AddVector(from + "post_attention_layernorm.weight", to + "ffn_norm.weight", hidden);
    AddLinear(from + "mlp.gate_proj", to + "ffn_gate", inner, hidden, config.mlp_bias);
    AddLinear(from + "mlp.up_proj", to + "ffn_up", inner, hidden, config.mlp_bias);
    AddLinear(from + "mlp.down_proj", to + "ffn_down", hidden, inner, config.mlp_bias);
  }

  void AddLinear(const std::string& from, const std::string& to, int64_t rows, int64_t columns,
                 bool bias, int64_t head_rows = 0) {
    AddMatrix(from + ".weight", to + ".weight", rows, columns, head_rows);
    if (bias) AddVector(from + ".bias", to + ".bias", rows, head_rows);
  }

  // transformers leaves such tensors out too, with a warning.
  void NoteUnused() {
    std::vector<std::string> unused;
    for (const auto& [name, tensor] : weights_.tensors()) {
      if (used_.count(name) == 0 && !name.ends_with(".rotary_emb.inv_freq")) unused.push_back(name);
    }
    if (unused.empty()) return;
    plan_.notes.push_back(fmt::format(
        "{} tensors of the folder are not part of a {} model as config.json describes it and are "
        "left out, the first is {}.",
        unused.size(), FamilyName(plan_.config.family), unused.front()));
  }

  void NoteWindow() {
    if (plan_.config.rope.max_context == 0) return;
    plan_.notes.push_back(
        fmt::format("The context is capped at {} tokens: beyond them this model's longrope "
                    "scaling rotates with other factors.",
                    plan_.config.rope.max_context));
  }

  const WeightFiles& weights_;
  ImportDtype dtype_;
  ImportPlan plan_;
  int64_t reorder_ = 0;
  std::set<std::string> used_;
  Status failure_;
};

}  // namespace

StatusOr<ImportPlan> PlanImport(const HfConfig& config, const WeightFiles& weights,
                                ImportDtype dtype) {
  return Planner(config, weights, dtype).Run();
}

}  // namespace portico::llama
