// Any bytes as a split pattern and a text: the pattern is refused, or its matches cover the text in order.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/utf8.h"
#include "tokenizer/regex/regex.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using portico::tokenizer::Regex;
  if (size < 2) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  size_t cut = bytes.empty() ? 0 : data[0] % (bytes.size() + 1);
  auto syntax = (data[1] & 1) != 0 ? Regex::Syntax::kOniguruma : Regex::Syntax::kFancyRegex;
  auto regex = Regex::Compile(bytes.substr(0, cut), syntax);
  if (!regex.ok()) return 0;
  std::string text = portico::ToValidUtf8(bytes.substr(cut));
  const auto matches = (*regex)->FindMatches(text);
  if (!matches.ok()) return 0;
  size_t at = 0;
  for (const auto& match : *matches) {
    if (match.begin != at || match.end < match.begin) __builtin_trap();
    at = match.end;
  }
  if (at != text.size()) __builtin_trap();
  return 0;
}
