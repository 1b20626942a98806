// A token and the text that it stands for.
#pragma once

#include <cstdint>

#include "tokenizer/token_id.h"

namespace portico::tokenizer {

// [begin, end) are bytes of the text; `word` counts the pieces that the model works on.
struct PlacedToken {
  TokenId id;
  uint32_t begin;
  uint32_t end;
  uint32_t word;
};

}  // namespace portico::tokenizer
