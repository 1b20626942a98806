#include "engine/grpc/tokenizer_files.h"

#include <openssl/evp.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/escaping.h"

namespace portico {
namespace {

constexpr size_t kMaxEntries = 1024;
constexpr size_t kMaxTotal = size_t{512} << 20;

Status Bad(std::string_view why) {
  return Error(StatusCode::kInvalidArgument, "the tokenizer's archive: " + std::string(why));
}

// Little-endian numbers; zero beyond the end.
uint32_t Read(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count && at + i < bytes.size(); ++i) {
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

// Not what could be anything else in the folder that it is written to.
bool IsWanted(std::string_view name) {
  constexpr std::string_view kEnds[] = {".json", ".jinja", ".txt", ".model", ".tiktoken"};
  if (name.empty() || name.size() > 128 || name.front() == '.') return false;
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
  return plain && std::any_of(std::begin(kEnds), std::end(kEnds),
                              [&](std::string_view end) { return name.ends_with(end); });
}

StatusOr<std::string> Inflate(std::string_view packed, size_t size) {
  constexpr size_t kMostExpansion = 1040;  // deflate's is 1,032
  if (size / kMostExpansion > packed.size()) return Bad("an entry cannot be inflated to its size");
  std::string out(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Bad("no memory to inflate it");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int result = inflate(&stream, Z_FINISH);
  const bool whole = result == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!whole) return Bad("an entry cannot be inflated to its size");
  return out;
}

}  // namespace

// PKWARE's APPNOTE, 4.3: the directory at the end names the entries, whose own headers are skipped.
StatusOr<std::vector<TokenizerFile>> ReadTokenizerArchive(std::string_view archive) {
  constexpr uint32_t kLocal = 0x04034b50, kEntry = 0x02014b50, kEnd = 0x06054b50;
  constexpr size_t kLocalBytes = 30, kEntryBytes = 46, kEndBytes = 22, kMaxComment = 65535;
  if (archive.size() < kEndBytes) return Bad("it is too short");
  size_t end = archive.size() - kEndBytes;
  const size_t first = end > kMaxComment ? end - kMaxComment : 0;
  while (Read(archive, end, 4) != kEnd) {
    if (end == first) return Bad("it has no directory");
    --end;
  }
  const size_t count = Read(archive, end + 10, 2);
  size_t at = Read(archive, end + 16, 4);
  if (count > kMaxEntries) return Bad("it has too many entries");
  std::vector<TokenizerFile> files;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    if (at > end || end - at < kEntryBytes || Read(archive, at, 4) != kEntry) {
      return Bad("its directory is damaged");
    }
    const uint32_t method = Read(archive, at + 10, 2);
    const uint32_t crc = Read(archive, at + 16, 4);
    const size_t packed = Read(archive, at + 20, 4);
    const size_t size = Read(archive, at + 24, 4);
    const size_t name_size = Read(archive, at + 28, 2);
    const size_t local = Read(archive, at + 42, 4);
    if (end - at - kEntryBytes < name_size) return Bad("its directory is damaged");
    std::string_view name = archive.substr(at + kEntryBytes, name_size);
    at += kEntryBytes + name_size + Read(archive, at + 30, 2) + Read(archive, at + 32, 2);
    if (const size_t slash = name.rfind('/'); slash != std::string_view::npos) {
      name.remove_prefix(slash + 1);
    }
    if (!IsWanted(name)) continue;
    if (local > end || end - local < kLocalBytes || Read(archive, local, 4) != kLocal) {
      return Bad("an entry is not where its directory says");
    }
    const size_t from =
        local + kLocalBytes + Read(archive, local + 26, 2) + Read(archive, local + 28, 2);
    if (from > end || end - from < packed) return Bad("an entry is cut off");
    if (size > kMaxTotal - total) return Bad("it is too large");
    total += size;
    const std::string_view content = archive.substr(from, packed);
    TokenizerFile file{std::string(name), {}};
    if (method == 0 && packed == size) {
      file.content = std::string(content);
    } else if (method == Z_DEFLATED) {
      PORTICO_ASSIGN_OR_RETURN(file.content, Inflate(content, size));
    } else {
      return Bad("an entry is packed in a way that is not known");
    }
    const uLong found = crc32(0, reinterpret_cast<const Bytef*>(file.content.data()),
                              static_cast<uInt>(file.content.size()));
    if (found != crc) return Bad("an entry is damaged");
    const bool again = std::any_of(files.begin(), files.end(),
                                   [&](const TokenizerFile& other) { return other.name == name; });
    if (again) return Bad("it has two files of one name");
    files.push_back(std::move(file));
  }
  return files;
}

std::string TokenizerArchiveSum(std::string_view archive) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(archive.data(), archive.size(), digest, &size, EVP_sha256(), nullptr);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), size});
}

}  // namespace portico
