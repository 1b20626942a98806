// Products of a matrix of floats (bfloat16, float16 or float32) and few vectors, whose bits are those that ggml has for several
// vectors.
//
// ggml multiplies four rows of the matrix at a time with several vectors, which for few vectors is bound by memory latency, and
// in another order with one. Here one row is read after the other, and what comes next is fetched; each sum grows in the same
// order whatever the number of vectors. (151,936 rows of 1,024 bfloat16, two vectors, two threads of a Zen 4: 6.1 ms, and 8.9
// with four rows at a time.)
#pragma once

#include "ggml.h"

namespace portico::llama {

// True if the operation is such a product, and this processor and ggml's build have the instructions: AVX-512 with BF16.
bool HasFloatProducts(const ggml_tensor* product);

// A ggml_custom_op_t: one thread's part.
void ComputeFloatProducts(ggml_tensor* to, int thread, int threads, void* unused);

}  // namespace portico::llama
