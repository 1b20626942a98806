// Products of a matrix and vectors that do not depend on how many vectors there are: each is a dot product of a row and a
// vector, by the same function and in the same order.
//
// ggml chooses another way for one vector than for several, and for several K-quantized rows another from eight vectors on.
// What it takes for prompts is two to three times as fast as this, for one vector it is this.
#pragma once

#include "ggml.h"

namespace portico::llama {

// True if the operation multiplies a matrix in the form that ComputeRowProducts() reads.
bool HasRowProducts(const ggml_tensor* product);

// True if ggml's own result for a vector has the same bits whatever others are computed with it; `several`: there are
// always at least two. Known of x86-64 by measuring.
bool IsBatchInvariant(const ggml_tensor* product, bool several);

// A ggml_custom_op_t: one thread's part.
void ComputeRowProducts(ggml_tensor* to, int thread, int threads, void* unused);

}  // namespace portico::llama
