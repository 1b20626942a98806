#include <fmt/format.h>

#include "engine/llama/import/plan/import_plan.h"
#include "engine/llama/import/plan/tensor_planner.h"

namespace portico::llama {
namespace {

// The position table is written whole, also the rows that RoBERTa's positions leave out: the engine
// says which row each token has.
void AddTensors(const EncoderConfig& config, const std::string& prefix, TensorPlanner* tensors) {
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  const std::string embeddings = prefix + "embeddings.";
  tensors->AddMatrix(embeddings + "word_embeddings.weight", "token_embd.weight", config.vocab_size,
                     hidden);
  // libllama adds its first row as it is, and ends the process if that is not float32.
  tensors->AddTable(embeddings + "token_type_embeddings.weight", "token_types.weight",
                    config.token_types, hidden);
  tensors->AddTable(embeddings + "position_embeddings.weight", "position_embd.weight",
                    config.positions, hidden);
  tensors->AddLayerNorm(embeddings + "LayerNorm", "token_embd_norm", hidden);
  for (int64_t layer = 0; layer < config.layers && tensors->ok(); ++layer) {
    const std::string from = fmt::format("{}encoder.layer.{}.", prefix, layer);
    const std::string to = fmt::format("blk.{}.", layer);
    const std::string attention = from + "attention.self.";
    tensors->AddLinear(attention + "query", to + "attn_q", hidden, hidden, true);
    tensors->AddLinear(attention + "key", to + "attn_k", hidden, hidden, true);
    tensors->AddLinear(attention + "value", to + "attn_v", hidden, hidden, true);
    tensors->AddLinear(from + "attention.output.dense", to + "attn_output", hidden, hidden, true);
    tensors->AddLayerNorm(from + "attention.output.LayerNorm", to + "attn_output_norm", hidden);
    tensors->AddLinear(from + "intermediate.dense", to + "ffn_up", inner, hidden, true);
    tensors->AddLinear(from + "output.dense", to + "ffn_down", hidden, inner, true);
    tensors->AddLayerNorm(from + "output.LayerNorm", to + "layer_output_norm", hidden);
  }
  tensors->Expect(embeddings + "position_ids");
  tensors->Expect(prefix + "pooler.");
  for (const char* head : {"classifier.", "cls.", "lm_head."}) tensors->Expect(head);
}

}  // namespace

StatusOr<ImportPlan> PlanImport(const EncoderConfig& config, const WeightFiles& weights,
                                ImportDtype dtype) {
  ImportPlan plan;
  plan.family = config.family;
  plan.architecture = "bert";
  TensorPlanner tensors(weights, dtype);
  AddTensors(config, PrefixOf(weights, "embeddings.word_embeddings.weight"), &tensors);
  PORTICO_RETURN_IF_ERROR(tensors.Finish(&plan));
  const auto set = [&](const std::string& key, PlannedValue value) {
    plan.metadata.emplace_back(key, std::move(value));
  };
  const auto number = [](int64_t value) { return static_cast<uint32_t>(value); };
  set("bert.vocab_size", number(config.vocab_size));
  set("bert.context_length", number(config.positions));
  set("bert.embedding_length", number(config.hidden_size));
  set("bert.block_count", number(config.layers));
  set("bert.feed_forward_length", number(config.intermediate_size));
  set("bert.attention.head_count", number(config.heads));
  set("bert.attention.layer_norm_epsilon", static_cast<float>(config.layer_norm_eps));
  set("bert.attention.causal", false);
  set("tokenizer.ggml.token_type_count", number(config.token_types));
  return plan;
}

}  // namespace portico::llama
