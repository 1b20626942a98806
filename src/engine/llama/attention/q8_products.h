// Products of a q8_0 matrix and vectors of floats, whose bits are those of ggml's.
//
// ggml multiplies four rows of the matrix with four vectors at a time. Of the few vectors that a step of decoding has, that is
// bound by the matrix's way from memory: four short streams, which the processor does not foresee. Here one row is read after
// the other, each for eight vectors. Each sum grows in the same order as ggml's.
//
// Qwen3-0.6B's shape, two threads of a Zen 4, one step of requests that decode: 1 request 18.5 ms with ggml's products and 11.5
// with these, 2: 53 and 13, 4: 77 and 18, 8: 77 and 28, 16: 112 and 53. A prompt of 512 tokens: 272 and 451 tokens/s. Without
// AVX-512's VNNI: 17, 27 and 53 ms of 2, 4 and 8, and for more vectors ggml's are faster and stay.
#pragma once

#include "ggml.h"

namespace portico::llama {

// True if the operation is such a product and this processor has the instructions: VNNI or, for
// few vectors, AVX2.
bool HasQ8Products(const ggml_tensor* product);

// A ggml_custom_op_t: one thread's part.
void ComputeQ8Products(ggml_tensor* to, int thread, int threads, void* unused);

// The same with AVX2 only, of any number of vectors.
void ComputeQ8ProductsAvx2(ggml_tensor* to, int thread, int threads, void* unused);

}  // namespace portico::llama
