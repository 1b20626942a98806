#include "engine/llama/layers/input_table.h"

#include <cstring>

namespace portico::llama {

void InputTable::LookUp(TokenId token, uint8_t token_type, float* out) const {
  const char* row = rows.data() + static_cast<size_t>(token) * columns * ggml_type_size(type);
  const auto count = static_cast<int64_t>(columns);
  if (type == GGML_TYPE_F16) {
    ggml_fp16_to_fp32_row(reinterpret_cast<const ggml_fp16_t*>(row), out, count);
  } else if (type == GGML_TYPE_BF16) {
    ggml_bf16_to_fp32_row(reinterpret_cast<const ggml_bf16_t*>(row), out, count);
  } else {
    std::memcpy(out, row, columns * sizeof(float));
  }
  if (token_type == 0) return;
  const std::vector<float>& more = types[token_type - 1u];
  for (size_t i = 0; i < columns; ++i) out[i] += more[i];
}

}  // namespace portico::llama
