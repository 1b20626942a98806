// Abseil's Base64 for std::string_view, which is another type than Abseil's own where that is built as C++14.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/escaping.h"

namespace portico {

// With padding.
inline std::string ToBase64(std::string_view bytes) {
  return absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()));
}

// Padding may be left out. False, and `bytes` is empty: `text` is something else.
inline bool FromBase64(std::string_view text, std::string* bytes) {
  return absl::Base64Unescape(absl::string_view(text.data(), text.size()), bytes);
}

}  // namespace portico
