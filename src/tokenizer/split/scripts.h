// Scripts as the UnicodeScripts pre-tokenizer tells them apart.
#pragma once

#include <cstdint>

namespace portico::tokenizer {

// A character that belongs to any script: a space, and what the reference's table does not name.
inline constexpr int kAnyScript = -1;

// The script's number; kana count as Han.
int SplitScriptOf(uint32_t code_point);

}  // namespace portico::tokenizer
