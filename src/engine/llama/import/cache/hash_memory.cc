#include "engine/llama/import/cache/hash_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "engine/llama/import/cache/content_hash.h"

namespace portico::llama {
namespace {

constexpr size_t kHexDigits = 128;

bool IsHash(std::string_view text) {
  return text.size() == kHexDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

StatusOr<HashMemory> HashMemory::Of(const std::string& folder,
                                    const std::vector<InputFile>& files) {
  std::vector<std::string> identity = {"content hash 1"};
  bool settled = true;
  for (const InputFile& file : files) {
    settled = settled && file.settled();
    PORTICO_ASSIGN_OR_RETURN(std::string stamp, file.Stamp());
    std::error_code ignored;
    identity.push_back(std::filesystem::absolute(file.path(), ignored).string());
    identity.push_back(std::move(stamp));
  }
  return HashMemory((std::filesystem::path(folder) / (HashTexts(identity) + ".hash")).string(),
                    settled);
}

std::optional<std::string> HashMemory::Find() const {
  auto text = ReadTextFile(path_, kHexDigits);
  if (!text.ok() || !IsHash(*text)) return std::nullopt;
  ::utimensat(AT_FDCWD, path_.c_str(), nullptr, 0);  // used now
  return *std::move(text);
}

void HashMemory::Store(const std::string& hash) const {
  if (!settled_) return;
  auto file = OutputFile::Create(fmt::format("{}.{}.tmp", path_, ::getpid()), hash.size());
  if (file.ok() && file->Append(hash.data(), hash.size()).ok()) file->Commit(path_).IgnoreError();
}

}  // namespace portico::llama
