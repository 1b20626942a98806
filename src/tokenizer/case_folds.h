// Characters that are several where case is ignored: ß is ss.
#pragma once

#include <string>

#include "tokenizer/code_points.h"

namespace portico::tokenizer {

// What those of `set` are, as alternatives of a pattern in the order of the characters: "ss|ʼn|…" (the full folds of
// Unicode's CaseFolding.txt). Nothing if there are none.
std::string FoldsOfSeveral(const CodePoints& set);

}  // namespace portico::tokenizer
