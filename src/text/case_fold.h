// A text without case, as Unicode's full case folding has it (CaseFolding.txt, status C and F).
#pragma once

#include <cstdint>
#include <string>

namespace portico {

// Appends what the character is without case: itself, another or up to three (U+00DF is "ss").
void AppendCaseFold(uint32_t code_point, std::string* out);

}  // namespace portico
