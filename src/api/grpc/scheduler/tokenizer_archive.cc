#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include "api/grpc/scheduler/tokenizer_call.h"

namespace portico::api::rpc {
namespace {

namespace fs = std::filesystem;

// What gateways load a tokenizer from.
constexpr std::string_view kFiles[] = {
    "added_tokens.json",
    "chat_template.jinja",
    "chat_template.json",
    "config.json",
    "generation_config.json",
    "merges.txt",
    "tiktoken.model",
    "tokenizer.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "vocab.json",
    "tokenizer_config.json",
};

// Little-endian numbers of the zip format (PKWARE's APPNOTE, 4.3).
void Append16(uint32_t value, std::string* out) {
  out->push_back(static_cast<char>(value));
  out->push_back(static_cast<char>(value >> 8));
}

void Append32(uint32_t value, std::string* out) {
  Append16(value, out);
  Append16(value >> 16, out);
}

// What the local header and the directory's entry share.
void AppendEntryFacts(const std::string& name, const std::string& content, std::string* out) {
  constexpr uint32_t kVersion = 20;
  constexpr uint32_t kStored = 0;
  constexpr uint32_t kDate = 33;  // 1 January 1980: the archive depends on its content alone
  const auto size = static_cast<uint32_t>(content.size());
  const uLong crc =
      crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size()));
  Append16(kVersion, out);
  Append16(0, out);
  Append16(kStored, out);
  Append16(0, out);
  Append16(kDate, out);
  Append32(static_cast<uint32_t>(crc), out);
  Append32(size, out);
  Append32(size, out);
  Append16(static_cast<uint32_t>(name.size()), out);
  Append16(0, out);
}

StatusOr<std::string> Zip(const std::vector<fs::path>& files) {
  constexpr uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
  constexpr size_t kMaxBytes = size_t{1} << 31;
  std::string archive, directory;
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    if (file.bad() || archive.size() + content.size() > kMaxBytes) {
      return Error(StatusCode::kFailedPrecondition, path.string() + " cannot be sent");
    }
    const std::string name = path.filename().string();
    const auto offset = static_cast<uint32_t>(archive.size());
    Append32(kLocal, &archive);
    AppendEntryFacts(name, content, &archive);
    archive += name;
    archive += content;
    Append32(kEntry, &directory);
    Append16(20, &directory);
    AppendEntryFacts(name, content, &directory);
    directory.append(10, '\0');  // no comment, disk 0, no attributes
    Append32(offset, &directory);
    directory += name;
  }
  const auto start = static_cast<uint32_t>(archive.size());
  const auto entries = static_cast<uint32_t>(files.size());
  archive += directory;
  Append32(kEnd, &archive);
  Append32(0, &archive);
  Append16(entries, &archive);
  Append16(entries, &archive);
  Append32(static_cast<uint32_t>(directory.size()), &archive);
  Append32(start, &archive);
  Append16(0, &archive);
  return archive;
}

}  // namespace

StatusOr<std::string> TokenizerArchive(const std::string& path) {
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  std::vector<fs::path> files;
  for (std::string_view name : kFiles) {
    if (fs::is_regular_file(folder / name, error)) files.push_back(folder / name);
  }
  if (files.empty()) {
    return Error(StatusCode::kFailedPrecondition,
                 "the model's tokenizer has no files of its own to send");
  }
  return Zip(files);
}

}  // namespace portico::api::rpc
