// U+2581, which SentencePiece's models and those after them write for a space.
#pragma once

#include <string_view>

namespace portico::tokenizer {

inline constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";

}  // namespace portico::tokenizer
