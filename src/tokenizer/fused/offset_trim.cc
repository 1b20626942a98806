#include "tokenizer/fused/offset_trim.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "text/unicode.h"
#include "tokenizer/normalize/normalized_string.h"

namespace portico::tokenizer {

OuterSpaces OuterSpacesOf(std::string_view token) {
  constexpr uint32_t kByteLevelSpace = 0x120;
  auto is_plain = [](char c) { return c > 0x20 && c < 0x7F; };  // surely none
  if (!token.empty() && is_plain(token.front()) && is_plain(token.back())) return {};
  auto is_space = [](uint32_t c) { return c == kByteLevelSpace || PropertiesOf(c).is_space(); };
  const std::vector<uint32_t> chars = CodePointsOf(token);
  OuterSpaces out;
  while (out.leading < chars.size() && is_space(chars[out.leading])) ++out.leading;
  while (out.trailing < chars.size() && is_space(chars[chars.size() - 1 - out.trailing])) {
    ++out.trailing;
  }
  return out;
}

void TrimSpan(OuterSpaces spaces, Span* span) {
  span->begin = static_cast<uint32_t>(std::min<size_t>(span->begin + spaces.leading, span->end));
  if (spaces.trailing > 0 && span->end >= spaces.trailing) {
    span->end = std::max(span->end - static_cast<uint32_t>(spaces.trailing), span->begin);
  }
}

}  // namespace portico::tokenizer
