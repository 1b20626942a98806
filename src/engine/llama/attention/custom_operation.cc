#include "engine/llama/attention/custom_operation.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace portico::llama {

// How ggml writes an operation down is its own affair: it is taken from one that ggml has made.
void BecomeCustom(ggml_tensor* tensor, ggml_custom_op_t compute, void* self) {
  alignas(GGML_MEM_ALIGN) std::array<char, 4096> memory;
  ggml_context* context = ggml_init({memory.size(), memory.data(), /*no_alloc=*/true});
  const ggml_tensor* made = ggml_custom_4d(context, GGML_TYPE_F32, 1, 1, 1, 1, tensor->src, 1,
                                           compute, GGML_N_TASKS_MAX, self);
  tensor->op = made->op;
  std::copy(std::begin(made->op_params), std::end(made->op_params), tensor->op_params);
  ggml_free(context);
}

}  // namespace portico::llama
