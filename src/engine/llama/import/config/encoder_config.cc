#include "engine/llama/import/config/encoder_config.h"

#include <fmt/format.h>

#include <string>

namespace portico::llama {
namespace {

constexpr int64_t kMaxEncoderLayers = 512;  // libllama's own bound

EncoderConfig EncoderDefaults(Family family) {
  EncoderConfig config;
  config.family = family;
  if (family == Family::kBert) return config;
  config.vocab_size = family == Family::kRoberta ? 50265 : 30522;
  config.pad_token_id = 1;
  return config;
}

// GELU under all its names in transformers/activations.py.
Status ReadActivation(const ConfigFields& fields, GeluForm* gelu) {
  const std::string name = fields.object().GetString("hidden_act", "gelu");
  if (name == "gelu" || name == "gelu_python") return OkStatus();
  *gelu = GeluForm::kTanh;
  for (const char* tanh :
       {"gelu_new", "gelu_fast", "gelu_accurate", "gelu_pytorch_tanh", "gelu_python_tanh"}) {
    if (name == tanh) return OkStatus();
  }
  return fields.Bad("hidden_act",
                    fmt::format("'{}' cannot be imported (gelu and gelu_new can)", name));
}

Status Check(const ConfigFields& fields, const EncoderConfig& config) {
  if (config.hidden_size % config.heads != 0) {
    return fields.Bad("hidden_size",
                      fmt::format("({}) must be a multiple of num_attention_heads ({})",
                                  config.hidden_size, config.heads));
  }
  if (config.context_length() < 1) {
    return fields.Bad(
        "max_position_embeddings",
        fmt::format("({}) leaves no position beside the padding's", config.positions));
  }
  const std::string positions = fields.object().GetString("position_embedding_type", "absolute");
  if (positions != "absolute") {
    return fields.Bad("position_embedding_type",
                      fmt::format("'{}' cannot be imported (absolute can)", positions));
  }
  if (fields.object().GetBool("is_decoder", false)) {
    return fields.Bad("is_decoder", "cannot be imported: encoders can");
  }
  if (fields.Has("quantization_config")) {
    return fields.Bad("quantization_config", "names quantized weights, which cannot be imported");
  }
  return OkStatus();
}

}  // namespace

StatusOr<EncoderConfig> ParseEncoderConfig(Family family, ConfigFields* fields) {
  EncoderConfig config = EncoderDefaults(family);
  fields->Int("vocab_size", &config.vocab_size);
  fields->Int("hidden_size", &config.hidden_size);
  fields->Int("intermediate_size", &config.intermediate_size);
  fields->Int("num_hidden_layers", &config.layers, 1, kMaxEncoderLayers);
  fields->Int("num_attention_heads", &config.heads, 1, 1 << 16);
  fields->Int("max_position_embeddings", &config.positions);
  fields->Int("type_vocab_size", &config.token_types, 1, 256);
  fields->Int("pad_token_id", &config.pad_token_id, 0);
  fields->Number("layer_norm_eps", &config.layer_norm_eps);
  PORTICO_RETURN_IF_ERROR(fields->status());
  PORTICO_RETURN_IF_ERROR(Check(*fields, config));
  PORTICO_RETURN_IF_ERROR(ReadActivation(*fields, &config.gelu));
  return config;
}

}  // namespace portico::llama
