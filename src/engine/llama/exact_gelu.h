// The activation of BERT's layers, x * Phi(x), to float32's precision.
//
// libllama computes GELU by its tanh approximation from a table of 16-bit values, which after two layers is 1.4e-3 off
// in a hidden state of size 1. That serves most uses, and llama.cpp's users; where float32 was asked for, this watches
// the graph, keeps what goes into each GELU and writes over what comes out.
#pragma once

#include <vector>

#include "ggml-backend.h"

namespace portico::llama {

// 1.5e-7 off at most, relative to the larger of 1 and x.
void GeluInPlace(float* values, size_t count);

class ExactGelu {
 public:
  // A ggml_backend_sched_eval_callback; `self` is an ExactGelu.
  static bool OnTensor(ggml_tensor* tensor, bool ask, void* self);

 private:
  std::vector<float> kept_;
};

}  // namespace portico::llama
