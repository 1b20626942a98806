// Any bytes as the zip archive of a worker's tokenizer: what comes out has safe names, each once, and is within the bounds.
// A second reading gives the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "engine/grpc/tokenizer_files.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kMostExpansion = 1100;
  const std::string_view archive(reinterpret_cast<const char*>(data), size);
  const auto files = portico::ReadTokenizerArchive(archive);
  const auto again = portico::ReadTokenizerArchive(archive);
  if (files.ok() != again.ok()) std::abort();
  if (!files.ok()) return 0;
  if (files->size() != again->size()) std::abort();
  std::set<std::string> names;
  for (const portico::TokenizerFile& file : *files) {
    if (!names.insert(file.name).second || file.name.find('/') != std::string::npos) std::abort();
    if (file.name.empty() || file.name.front() == '.') std::abort();
    if (file.content.size() > kMostExpansion * (size + 1)) std::abort();
  }
  return 0;
}
