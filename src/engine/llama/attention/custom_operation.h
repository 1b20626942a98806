// Operations of libllama's graphs that are replaced before the graph is computed.
#pragma once

#include "ggml.h"

namespace portico::llama {

// Makes the tensor's operation one that `compute` does, on all threads; its sources stay as they are.
void BecomeCustom(ggml_tensor* tensor, ggml_custom_op_t compute, void* self);

}  // namespace portico::llama
