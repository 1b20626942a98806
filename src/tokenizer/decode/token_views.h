// The two views of a stream of tokens.
#pragma once

#include <string_view>

namespace portico {

// What a token adds to each of them.
struct TokenViews {
  std::string_view all;    // the text with its special tokens: what stop strings are looked for in
  std::string_view shown;  // the text without those that the reader does not see
};

}  // namespace portico
