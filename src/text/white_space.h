#pragma once

#include <string_view>

namespace portico {

// JSON's white space (RFC 8259, section 2). Templates and models that write calls use no other between the parts of a call.
inline constexpr std::string_view kWhiteSpace = " \t\r\n";

inline bool IsWhiteSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

inline std::string_view TrimWhiteSpace(std::string_view text) {
  const size_t begin = text.find_first_not_of(kWhiteSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kWhiteSpace) - begin + 1);
}

}  // namespace portico
