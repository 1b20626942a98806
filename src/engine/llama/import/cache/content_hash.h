// A hash over the whole content of files, by several threads: it names an import in the cache, so
// that changed weights are never answered with an old import.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/llama/import/files/file.h"

namespace portico::llama {

// BLAKE2b-512 over sizes and the BLAKE2b-512 of each 8 MiB block, in hex. `threads` ≥ 1, the
// calling one included; `done` is called on the calling thread with the share read, 0 to 1.
StatusOr<std::string> HashFiles(const std::vector<InputFile>& files, int threads,
                                const std::function<void(double)>& done);

// BLAKE2b-512 of the texts, each preceded by its length; the first 40 hex digits.
std::string HashTexts(const std::vector<std::string>& texts);

}  // namespace portico::llama
