#include "engine/llama/import/config/hf_config.h"

#include <fmt/format.h>

#include "engine/llama/import/config/config_fields.h"
#include "engine/llama/import/files/file.h"

namespace portico::llama {
namespace {

constexpr int64_t kMaxLayers = 512;  // libllama's own bound

// What the configuration classes assume for absent fields.
HfConfig Defaults(Family family) {
  HfConfig config;
  config.family = family;
  config.hidden_size = 4096;
  config.layers = config.heads = config.kv_heads = 32;
  switch (family) {
    case Family::kLlama:
      config.vocab_size = 32000;
      config.intermediate_size = 11008;
      config.max_position_embeddings = 2048;
      break;
    case Family::kMistral:
      config.vocab_size = 32000;
      config.intermediate_size = 14336;
      config.kv_heads = 8;
      config.max_position_embeddings = 131072;
      break;
    case Family::kQwen3:
      config.head_dim = 128;
      [[fallthrough]];
    case Family::kQwen2:
      config.vocab_size = 151936;
      config.intermediate_size = 22016;
      config.max_position_embeddings = 32768;
      break;
    case Family::kBert:
    case Family::kRoberta:
    case Family::kXlmRoberta:
      break;
  }
  return config;
}

bool IsNull(const ConfigFields& fields, std::string_view name) {
  const Json* member = fields.object().Find(name);
  return member != nullptr && member->is_null();
}

void ReadSizes(ConfigFields* fields, HfConfig* config) {
  fields->Int("vocab_size", &config->vocab_size);
  fields->Int("hidden_size", &config->hidden_size);
  fields->Int("intermediate_size", &config->intermediate_size);
  fields->Int("num_hidden_layers", &config->layers, 1, kMaxLayers);
  fields->Int("num_attention_heads", &config->heads, 1, 1 << 16);
  fields->Int("max_position_embeddings", &config->max_position_embeddings);
  fields->Number("rms_norm_eps", &config->rms_norm_eps);
  fields->Bool("tie_word_embeddings", &config->tied);

  bool defaults_to_heads =
      config->family == Family::kLlama || IsNull(*fields, "num_key_value_heads");
  if (defaults_to_heads) config->kv_heads = config->heads;
  fields->Int("num_key_value_heads", &config->kv_heads, 1, 1 << 16);

  if (config->head_dim == 0 || IsNull(*fields, "head_dim")) {
    config->head_dim = config->hidden_size / config->heads;
  }
  fields->Int("head_dim", &config->head_dim, 2, 1 << 16);
}

void ReadBiases(ConfigFields* fields, HfConfig* config) {
  bool attention_bias = false;
  switch (config->family) {
    case Family::kLlama:
      fields->Bool("mlp_bias", &config->mlp_bias);
      [[fallthrough]];
    case Family::kQwen3:
      fields->Bool("attention_bias", &attention_bias);
      config->qkv_bias = config->output_bias = attention_bias;
      break;
    case Family::kQwen2:
      config->qkv_bias = true;
      break;
    default:
      break;
  }
}

// Mistral slides on every layer unless sliding_window is null; Qwen only with use_sliding_window,
// and on the layers that layer_types or max_window_layers say.
void ReadWindow(ConfigFields* fields, HfConfig* config) {
  if (config->family == Family::kLlama || IsNull(*fields, "sliding_window")) return;
  int64_t window = 4096;
  fields->Int("sliding_window", &window);
  if (config->family != Family::kMistral) {
    bool used = false;
    fields->Bool("use_sliding_window", &used);
    int64_t first = 28;
    fields->Int("max_window_layers", &first, 0);
    bool sliding = first < config->layers;
    if (const Json* types = fields->Find("layer_types"); types != nullptr && types->is_array()) {
      sliding = false;
      for (const Json& type : types->as_array()) sliding |= type == Json("sliding_attention");
    }
    if (!used || !sliding) return;
  }
  config->window = window;
}

Status CheckConsistent(const ConfigFields& fields, const HfConfig& config) {
  if (config.heads % config.kv_heads != 0) {
    return fields.Bad("num_attention_heads",
                      fmt::format("({}) must be a multiple of num_key_value_heads ({})",
                                  config.heads, config.kv_heads));
  }
  if (config.head_dim < 2 || config.head_dim % 2 != 0) {
    return fields.Bad("head_dim", fmt::format("({}) must be even", config.head_dim));
  }
  if (config.family == Family::kQwen3 && config.output_bias) {
    return fields.Bad("attention_bias", "cannot be imported for Qwen3: libllama has no bias there");
  }
  if (fields.Has("quantization_config")) {
    return fields.Bad("quantization_config",
                      "names weights that are quantized already, which cannot be imported; use the "
                      "original weights with --quantization, or a GGUF file");
  }
  std::string activation = fields.object().GetString("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    return fields.Bad("hidden_act", fmt::format("'{}' cannot be imported (silu can)", activation));
  }
  return OkStatus();
}

// libllama takes a divisor for each frequency only for its "llama" architecture.
Status CheckRope(const ConfigFields& fields, const HfConfig& config) {
  using Scaling = Rope::Scaling;
  if (config.family != Family::kQwen3) return OkStatus();
  bool yarn_as_is = config.rope.scaling == Scaling::kYarn && config.rope.truncate;
  if (config.rope.scaling == Scaling::kNone || config.rope.scaling == Scaling::kLinear ||
      yarn_as_is) {
    return OkStatus();
  }
  return fields.Bad("rope_scaling",
                    "cannot be imported for Qwen3 (default, linear, dynamic and yarn can)");
}

}  // namespace

StatusOr<HfConfig> ParseHfConfig(const std::string& text, const std::string& path) {
  PORTICO_ASSIGN_OR_RETURN(Json json, ParseConfigJson(text, path));
  ConfigFields fields(json, path);
  PORTICO_ASSIGN_OR_RETURN(Architecture architecture, ParseArchitecture(fields));
  return ParseHfConfig(architecture, &fields);
}

StatusOr<HfConfig> ParseHfConfig(const Architecture& architecture, ConfigFields* fields) {
  HfConfig config = Defaults(architecture.family);
  config.top = architecture.top;
  ReadSizes(fields, &config);
  ReadBiases(fields, &config);
  ReadWindow(fields, &config);
  PORTICO_RETURN_IF_ERROR(fields->status());
  PORTICO_RETURN_IF_ERROR(CheckConsistent(*fields, config));
  PORTICO_ASSIGN_OR_RETURN(config.rope, ParseRope(*fields, config.max_position_embeddings));
  PORTICO_RETURN_IF_ERROR(CheckRope(*fields, config));
  PORTICO_ASSIGN_OR_RETURN(config.rope_divisors,
                           FrequencyDivisors(config.rope, config.head_dim, *fields));
  return config;
}

}  // namespace portico::llama
