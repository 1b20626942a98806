// Test helper: small random checkpoints, written as a Hugging Face folder in any of its forms.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/llama/import/temp_folder_for_test.h"
#include "ggml.h"
#include "text/json.h"

namespace portico::llama {

struct TestTensor {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// One tensor of a safetensors file as it lies there.
struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
};

inline std::string LittleEndian64(uint64_t value) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

inline std::string SafetensorsText(const std::string& header, const std::string& data) {
  return LittleEndian64(header.size()) + header + data;
}

inline std::string SafetensorsBytes(const std::vector<RawTensor>& tensors) {
  JsonObject header;
  header.emplace_back("__metadata__", JsonObject{{"format", "pt"}});
  std::string data;
  for (const RawTensor& tensor : tensors) {
    JsonArray shape;
    for (int64_t size : tensor.shape) shape.emplace_back(size);
    int64_t begin = static_cast<int64_t>(data.size());
    data += tensor.bytes;
    header.emplace_back(
        tensor.name,
        JsonObject{{"dtype", tensor.dtype},
                   {"shape", std::move(shape)},
                   {"data_offsets", JsonArray{begin, static_cast<int64_t>(data.size())}}});
  }
  return SafetensorsText(Json(std::move(header)).Dump(), data);
}

inline std::string EncodeWeights(const std::vector<float>& values, const std::string& dtype) {
  std::string bytes(values.size() * (dtype == "F32" ? 4 : 2), '\0');
  int64_t count = static_cast<int64_t>(values.size());
  if (dtype == "F32") std::memcpy(bytes.data(), values.data(), bytes.size());
  if (dtype == "BF16") {
    ggml_fp32_to_bf16_row(values.data(), reinterpret_cast<ggml_bf16_t*>(bytes.data()), count);
  }
  if (dtype == "F16") {
    ggml_fp32_to_fp16_row(values.data(), reinterpret_cast<ggml_fp16_t*>(bytes.data()), count);
  }
  return bytes;
}

// A checkpoint: config.json and the weights that it asks for. Change both before Write() to damage
// it.
struct TestModel {
  Json config;
  std::map<std::string, TestTensor> tensors;

  int64_t Size(const char* key) const { return config.GetInt(key, 0); }
  int64_t HeadDim() const {
    return config.GetInt("head_dim", Size("hidden_size") / Size("num_attention_heads"));
  }
  bool Flag(const char* key) const { return config.GetBool(key, false); }

  // config.json and `shards` safetensors files of `dtype` (one: model.safetensors).
  void Write(const std::string& folder, const std::string& dtype = "F32", int shards = 1) const {
    WriteFile(folder + "/config.json", config.Dump());
    std::vector<std::vector<RawTensor>> files(static_cast<size_t>(shards));
    JsonObject map;
    size_t next = 0;
    for (const auto& [name, tensor] : tensors) {
      size_t shard = next++ % files.size();
      files[shard].push_back({name, dtype, tensor.shape, EncodeWeights(tensor.values, dtype)});
      map.emplace_back(name, ShardName(shard, shards));
    }
    for (size_t i = 0; i < files.size(); ++i) {
      WriteFile(folder + "/" + ShardName(i, shards), SafetensorsBytes(files[i]));
    }
    if (shards > 1) {
      WriteFile(
          folder + "/model.safetensors.index.json",
          Json(JsonObject{{"metadata", JsonObject{}}, {"weight_map", std::move(map)}}).Dump());
    }
  }

  static std::string ShardName(size_t index, int shards) {
    if (shards == 1) return "model.safetensors";
    return "model-0000" + std::to_string(index + 1) + "-of-0000" + std::to_string(shards) +
           ".safetensors";
  }
};

// Values n/256 with |n| ≤ 96: exact in bf16, f16 and f32.
inline TestTensor RandomTensor(std::vector<int64_t> shape, std::mt19937* random) {
  TestTensor tensor;
  size_t size = 1;
  for (int64_t dimension : shape) size *= static_cast<size_t>(dimension);
  tensor.shape = std::move(shape);
  for (size_t i = 0; i < size; ++i) {
    tensor.values.push_back((static_cast<float>((*random)() % 193) - 96.0f) / 256.0f);
  }
  return tensor;
}

// A model for `config`, which names all sizes, with every weight that transformers would look for.
inline TestModel RandomModel(Json config, uint32_t seed = 1) {
  TestModel model{std::move(config), {}};
  std::mt19937 random(seed);
  const std::string type = model.config.GetString("model_type");
  const int64_t hidden = model.Size("hidden_size"), inner = model.Size("intermediate_size");
  const int64_t heads = model.Size("num_attention_heads");
  const int64_t q = heads * model.HeadDim();
  const int64_t kv = model.config.GetInt("num_key_value_heads", heads) * model.HeadDim();
  auto add = [&](const std::string& name, std::vector<int64_t> shape) {
    model.tensors[name] = RandomTensor(std::move(shape), &random);
  };
  auto linear = [&](const std::string& name, int64_t rows, int64_t columns, bool bias) {
    add(name + ".weight", {rows, columns});
    if (bias) add(name + ".bias", {rows});
  };
  add("model.embed_tokens.weight", {model.Size("vocab_size"), hidden});
  add("model.norm.weight", {hidden});
  if (!model.Flag("tie_word_embeddings")) add("lm_head.weight", {model.Size("vocab_size"), hidden});
  const bool qkv_bias = type == "qwen2" || model.Flag("attention_bias");
  for (int64_t i = 0; i < model.Size("num_hidden_layers"); ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    add(layer + "input_layernorm.weight", {hidden});
    add(layer + "post_attention_layernorm.weight", {hidden});
    linear(layer + "self_attn.q_proj", q, hidden, qkv_bias);
    linear(layer + "self_attn.k_proj", kv, hidden, qkv_bias);
    linear(layer + "self_attn.v_proj", kv, hidden, qkv_bias);
    linear(layer + "self_attn.o_proj", hidden, q, model.Flag("attention_bias"));
    if (type == "qwen3") {
      add(layer + "self_attn.q_norm.weight", {model.HeadDim()});
      add(layer + "self_attn.k_norm.weight", {model.HeadDim()});
    }
    linear(layer + "mlp.gate_proj", inner, hidden, model.Flag("mlp_bias"));
    linear(layer + "mlp.up_proj", inner, hidden, model.Flag("mlp_bias"));
    linear(layer + "mlp.down_proj", hidden, inner, model.Flag("mlp_bias"));
  }
  for (auto& [name, tensor] : model.tensors) {
    if (name.find("norm") == std::string::npos) continue;
    // Near 1, as trained ones are, and still exact in bf16.
    for (float& value : tensor.values) value = 1.0f + std::round(value * 32) / 32;
  }
  return model;
}

// The smallest config that has every size; `changes` replace or add members.
inline Json SmallConfig(const std::string& type, const JsonObject& changes = {}) {
  std::string architecture = type;
  architecture[0] = static_cast<char>(architecture[0] - 'a' + 'A');
  Json config(JsonObject{{"architectures", JsonArray{architecture + "ForCausalLM"}},
                         {"model_type", type},
                         {"vocab_size", 101},
                         {"hidden_size", 64},
                         {"intermediate_size", 96},
                         {"num_hidden_layers", 2},
                         {"num_attention_heads", 4},
                         {"num_key_value_heads", 2},
                         {"max_position_embeddings", 256},
                         {"tie_word_embeddings", false},
                         {"sliding_window", nullptr}});
  if (type == "qwen3") config.Set("head_dim", 16);
  for (const auto& [key, value] : changes) config.Set(key, value);
  return config;
}

}  // namespace portico::llama
