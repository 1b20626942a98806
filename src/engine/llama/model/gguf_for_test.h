// Test helper: GGUF files of small random models, for architectures of which no folder is imported.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "ggml.h"
#include "gguf.h"

namespace portico::llama {

class RandomGguf {
 public:
  // A model of two layers, without a tokenizer.
  RandomGguf(const std::string& architecture, uint32_t vocabulary, uint32_t hidden)
      : architecture_(architecture),
        context_(ggml_init({size_t{8} << 20, nullptr, /*no_alloc=*/false})),
        gguf_(gguf_init_empty()) {
    gguf_set_val_str(gguf_, "general.architecture", architecture.c_str());
    gguf_set_val_str(gguf_, "tokenizer.ggml.model", "none");
    Set("vocab_size", vocabulary);
    Set("context_length", 256u);
    Set("embedding_length", hidden);
    Set("block_count", 2u);
    Add("token_embd.weight", {hidden, vocabulary});
    Add("output_norm.weight", {hidden});
  }
  ~RandomGguf() {
    gguf_free(gguf_);
    ggml_free(context_);
  }
  RandomGguf(const RandomGguf&) = delete;
  RandomGguf& operator=(const RandomGguf&) = delete;

  void Set(const std::string& key, uint32_t value) {
    gguf_set_val_u32(gguf_, (architecture_ + "." + key).c_str(), value);
  }
  void Set(const std::string& key, float value) {
    gguf_set_val_f32(gguf_, (architecture_ + "." + key).c_str(), value);
  }

  // Columns first, in float32. Values of norms are around 1, those of others around 0, those of "ssm_a" below it.
  void Add(const std::string& name, const std::vector<int64_t>& shape) {
    ggml_tensor* tensor =
        ggml_new_tensor(context_, GGML_TYPE_F32, static_cast<int>(shape.size()), shape.data());
    ggml_set_name(tensor, name.c_str());
    auto* values = static_cast<float*>(tensor->data);
    const bool norm = name.ends_with("norm.weight"), negative = name.ends_with("ssm_a");
    for (int64_t i = 0; i < ggml_nelements(tensor); ++i) {
      const float value = (static_cast<float>(random_() % 193) - 96.0f) / 256.0f;
      values[i] = negative ? -std::fabs(value) - 0.1f : norm ? 1.0f + value / 4 : value;
    }
    gguf_add_tensor(gguf_, tensor);
  }
  // "blk.0." and "blk.1." in front of the name.
  void AddToLayers(const std::string& name, const std::vector<int64_t>& shape) {
    for (const char* layer : {"blk.0.", "blk.1."}) Add(layer + name, shape);
  }

  void Write(const std::string& path) const {
    ASSERT_TRUE(gguf_write_to_file(gguf_, path.c_str(), /*only_meta=*/false));
  }

 private:
  std::string architecture_;
  ggml_context* context_;
  gguf_context* gguf_;
  std::mt19937 random_{1};
};

}  // namespace portico::llama
