// Products of a matrix of floats (bfloat16, float16 or float32) and few vectors, whose bits are those that ggml has for several
// vectors.
//
// ggml multiplies four rows of the matrix at a time with several vectors, which for few vectors is bound by memory latency, and
// in another order with one. Here two rows are read at a time and the next two are fetched; each sum grows in the same order
// whatever the number of vectors.
#pragma once

#include "ggml.h"

namespace portico::llama {

// True if the operation is such a product, and this processor and ggml's build have the instructions: AVX-512 with BF16.
bool HasFloatProducts(const ggml_tensor* product);

// A ggml_custom_op_t: one thread's part.
void ComputeFloatProducts(ggml_tensor* to, int thread, int threads, void* unused);

}  // namespace portico::llama
