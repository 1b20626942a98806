// What the names in tokenizer.ggml.pre stand for.
#pragma once

#include <string_view>

#include "base/status.h"

namespace portico::tokenizer {

struct GgufPreTokenizer {
  std::string_view pre_tokenizer;  // as in a tokenizer.json
  bool ignore_merges = false;
  bool nfc = false;
  bool add_bos = false;  // unless the file says otherwise
};

// Names that are not known are an error: a guess would cut text in other places than the model learned.
StatusOr<GgufPreTokenizer> FindGgufPreTokenizer(std::string_view name);

}  // namespace portico::tokenizer
