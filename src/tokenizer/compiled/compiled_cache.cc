#include "tokenizer/compiled/compiled_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/cache_folder.h"
#include "tokenizer/compiled/compiled_model.h"

namespace portico::tokenizer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".tokenizer";
constexpr std::string_view kTemporary = ".tmp";
constexpr const char* kSaltName = "salt";
constexpr size_t kSaltBytes = 16;
// What a writer that died has left is removed when it is this old.
constexpr std::chrono::hours kLeftover{1};

bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(fd, text.data(), text.size());
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// A new file beside `path` with this text; its name, or "" where it could not be written.
std::string WriteTemporary(const std::string& path, std::string_view head,
                           std::string_view text = {}) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof(number), 0) != sizeof(number)) return {};
  std::string name = fmt::format("{}.{:016x}{}", path, number, kTemporary);
  int fd = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return {};
  bool written = WriteAll(fd, head) && WriteAll(fd, text);
  if (close(fd) == 0 && written) return name;
  unlink(name.c_str());
  return {};
}

// Random bytes of this folder, the same for all processes: made by the first.
std::string SaltOf(const std::string& folder) {
  std::string path = folder + "/" + kSaltName;
  auto existing = [&]() -> std::string {
    std::shared_ptr<const CompiledImage> file = CompiledImage::Read(path, kSaltBytes);
    return file && file->text().size() == kSaltBytes ? std::string(file->text()) : std::string();
  };
  if (std::string salt = existing(); !salt.empty()) return salt;
  std::error_code error;
  fs::create_directories(folder, error);
  std::string salt(kSaltBytes, '\0');
  if (getrandom(salt.data(), salt.size(), 0) != static_cast<ssize_t>(salt.size())) return {};
  std::string temporary = WriteTemporary(path, salt);
  if (temporary.empty()) return {};
  // Whoever comes first wins; a damaged salt is replaced.
  if (link(temporary.c_str(), path.c_str()) == 0) {
    unlink(temporary.c_str());
  } else if (existing().empty()) {
    rename(temporary.c_str(), path.c_str());
  } else {
    unlink(temporary.c_str());
  }
  return existing();
}

bool IsOff() {
  const char* value = std::getenv("PORTICO_TOKENIZER_CACHE");
  std::string_view text = value == nullptr ? "" : value;
  return text == "0" || text == "off";
}

}  // namespace

CompiledCache CompiledCache::OfUser() {
  if (IsOff()) return CompiledCache("");
  StatusOr<std::string> folder = CacheFolder();
  return CompiledCache(folder.ok() ? *folder + "/tokenizers" : std::string());
}

std::optional<ContentKey> CompiledCache::KeyOf(std::string_view kind,
                                               std::string_view source) const {
  if (folder_.empty()) return std::nullopt;
  std::string salt = SaltOf(folder_);
  if (salt.empty()) return std::nullopt;
  return KeyOfContent(source, fmt::format("{} {} {}", salt, kind, PORTICO_VERSION));
}

std::string CompiledCache::PathOf(const ContentKey& key) const {
  return fmt::format("{}/{}{}", folder_, key.Hex(), kSuffix);
}

std::optional<CompiledTokenizer> CompiledCache::Find(const ContentKey& key) const {
  const std::string path = PathOf(key);
  std::shared_ptr<const CompiledImage> image = CompiledImage::Read(path, max_bytes_);
  if (!image) return std::nullopt;
  std::optional<std::string_view> payload = OpenCompiled(key, image->text());
  if (!payload) return std::nullopt;
  CompiledReader in(*payload);
  std::string_view frame;
  std::string_view model;
  std::string_view merger;
  CompiledTokenizer out;
  if (!in.Text(&frame) || !in.Part(&model) || !in.Part(&merger) || !in.Part(&out.fused) ||
      !in.Part(&out.decode_table) || !in.AtEnd()) {
    return std::nullopt;
  }
  out.frame = std::string(frame);
  out.model = RestoreModel(model);
  if (!out.model) return std::nullopt;
  if (const auto* bpe = dynamic_cast<const Bpe*>(out.model.get()); bpe && !merger.empty()) {
    out.merger = PieceMerger::Restore(*bpe, merger);
    if (!out.merger) return std::nullopt;
  }
  out.image = std::move(image);
  utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // used now
  return out;
}

std::optional<CompiledWriter> CompiledCache::Begin(std::string_view frame, const Model& model) {
  CompiledWriter out;
  constexpr size_t kRoom = size_t{48} << 20;  // more than most tokenizers take
  out.Reserve(kRoom);
  out.Text(frame);
  bool saved = false;
  out.PartOf([&](CompiledWriter* to) { saved = SaveModel(model, to); });
  return saved ? std::optional(std::move(out)) : std::nullopt;
}

void CompiledCache::Store(const ContentKey& key, CompiledWriter begun, const PieceMerger* merger,
                          const FusedEncoder* fused, const DecodeTable* decode) const {
  auto part = [&](const auto* tables) {
    begun.PartOf([&](CompiledWriter* to) {
      if (tables != nullptr) tables->Save(to);
    });
  };
  part(merger);
  part(fused);
  part(decode);
  const std::string payload = begun.Take();
  const std::string header = CompiledHeader(key, payload);
  if (header.size() + payload.size() > max_bytes_) return;
  const std::string path = PathOf(key);
  std::string temporary = WriteTemporary(path, header, payload);
  if (temporary.empty()) return;
  if (rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
  Trim();
}

void CompiledCache::Trim() const {
  std::vector<CachedFile> files = CachedFiles(folder_);
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  std::erase_if(files, [&](const CachedFile& file) {
    const std::string name = file.path.filename().string();
    if (name.ends_with(kTemporary) && now - file.used > kLeftover) fs::remove(file.path, error);
    return !name.ends_with(kSuffix);
  });
  TrimCache(std::move(files), max_bytes_, [&](const fs::path& path) {
    fs::remove(path, error);
    return true;
  });
}

}  // namespace portico::tokenizer
