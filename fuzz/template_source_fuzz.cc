// Parses arbitrary text as a chat template, without rendering: the lexer, the parser and the scope analysis alone, at
// many times the speed of template_render.
#include <cstddef>
#include <cstdint>
#include <string>

#include "template/template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)portico::Template::Parse(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
