#include "tokenizer/split/scripts.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "text/unicode_tables.h"

namespace portico::tokenizer {

int SplitScriptOf(uint32_t code_point) {
  using unicode_tables::kScriptRuns;
  using unicode_tables::kScriptRunsSize;
  // The first code point behind each run.
  static const std::vector<uint32_t>* const ends = [] {
    auto* out = new std::vector<uint32_t>;
    uint32_t at = 0;
    for (size_t i = 0; i + 1 < kScriptRunsSize; i += 2) out->push_back(at += kScriptRuns[i]);
    return out;
  }();
  auto run = std::upper_bound(ends->begin(), ends->end(), code_point) - ends->begin();
  auto index = static_cast<size_t>(run) * 2 + 1;
  if (index >= kScriptRunsSize || kScriptRuns[index] == 0) return kAnyScript;
  return static_cast<int>(kScriptRuns[index]);
}

}  // namespace portico::tokenizer
