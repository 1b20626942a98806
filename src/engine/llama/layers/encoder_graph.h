// What Portico computes itself of the graph that libllama builds for BERT and its kin: operations that are replaced
// before the graph is computed, within the threads that compute it.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/llama/layers/exact_gelu.h"
#include "ggml-backend.h"

namespace portico::llama {

// One a context. It outlives the context and is changed between two batches only.
struct EncoderGraph {
  explicit EncoderGraph(GeluForm form) : gelu(form) {}

  // A ggml_backend_sched_eval_callback; `self` is an EncoderGraph. It never asks for a tensor, so that the graph is
  // computed in one go.
  static bool OnTensor(ggml_tensor* tensor, bool ask, void* self);

  const GeluForm gelu;
  // The row of the batch that each text begins with, and the number of rows.
  std::vector<int32_t> text_begins;
  float attention_scale = 0;  // what the graph says
};

}  // namespace portico::llama
