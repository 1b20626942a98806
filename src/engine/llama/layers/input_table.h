// A model's token embeddings, looked up here instead of by libllama: a model that only pools then needs no output over
// the vocabulary, which libllama would compute for every token, and token types can be told apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ggml.h"
#include "message/sampling.h"

namespace portico::llama {

struct InputTable {
  ggml_type type = GGML_TYPE_F32;  // F32, F16 or BF16
  size_t columns = 0;
  std::vector<char> rows;  // one a token id, as the checkpoint has them
  // What is added for each token type, from 1 on; libllama adds that of type 0 to all. columns each.
  std::vector<std::vector<float>> types;

  bool empty() const { return rows.empty(); }
  // `token` is within the vocabulary, `token_type` within 1 + types.size(). Writes `columns` floats.
  void LookUp(TokenId token, uint8_t token_type, float* out) const;
};

}  // namespace portico::llama
