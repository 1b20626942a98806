// The activation of BERT's layers, x * Phi(x) or its approximation by tanh, to float32's precision.
//
// libllama computes the latter for both, from a table of 16-bit values: after two layers that is 1.4e-3 off in a hidden
// state of size 1, and 0.9e-3 where the model was trained with tanh. That serves most uses, and llama.cpp's users; where
// float32 was asked for, this watches the graph, keeps what goes into each GELU and writes over what comes out.
#pragma once

#include <vector>

#include "ggml-backend.h"

namespace portico::llama {

enum class GeluForm { kErf, kTanh };

// 1.5e-7 off at most, relative to the larger of 1 and x.
void GeluInPlace(GeluForm form, float* values, size_t count);

class ExactGelu {
 public:
  explicit ExactGelu(GeluForm form) : form_(form) {}

  // A ggml_backend_sched_eval_callback; `self` is an ExactGelu.
  static bool OnTensor(ggml_tensor* tensor, bool ask, void* self);

 private:
  const GeluForm form_;
  std::vector<float> kept_;
};

}  // namespace portico::llama
