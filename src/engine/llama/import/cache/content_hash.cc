#include "engine/llama/import/cache/content_hash.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "base/mutex.h"

namespace portico::llama {
namespace {

constexpr uint64_t kBlockBytes = 8u << 20;
using Digest = std::array<unsigned char, 64>;

Digest Blake2b(std::string_view data) {
  Digest digest{};
  unsigned int size = digest.size();
  EVP_Digest(data.data(), data.size(), digest.data(), &size, EVP_blake2b512(), nullptr);
  return digest;
}

std::string Hex(const Digest& digest) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

struct Block {
  size_t file;
  uint64_t offset;
  size_t size;
};

std::vector<Block> Split(const std::vector<InputFile>& files) {
  std::vector<Block> blocks;
  for (size_t file = 0; file < files.size(); ++file) {
    for (uint64_t at = 0; at < files[file].size(); at += kBlockBytes) {
      uint64_t size = std::min(kBlockBytes, files[file].size() - at);
      blocks.push_back({file, at, static_cast<size_t>(size)});
    }
  }
  return blocks;
}

// Blocks are taken by whoever is free; each has its own place for the result.
class Hasher {
 public:
  explicit Hasher(const std::vector<InputFile>& files)
      : files_(files), blocks_(Split(files)), digests_(blocks_.size()) {}

  void Work(const std::function<void(double)>* done) {
    std::string buffer;
    while (true) {
      size_t index = next_.fetch_add(1);
      if (index >= blocks_.size() || failed_) return;
      const Block& block = blocks_[index];
      buffer.resize(block.size);
      Status read = files_[block.file].ReadAt(block.offset, buffer.data(), buffer.size());
      if (!read.ok()) return Fail(read);
      digests_[index] = Blake2b(buffer);
      if (done != nullptr) {
        (*done)(static_cast<double>(index + 1) / static_cast<double>(blocks_.size()));
      }
    }
  }

  size_t blocks() const { return blocks_.size(); }
  Status failure() {
    const MutexLock lock(&mutex_);
    return failure_;
  }

  std::string Result() const {
    std::string all;
    for (const InputFile& file : files_) all += fmt::format("{} ", file.size());
    for (const Digest& digest : digests_) all.append(digest.begin(), digest.end());
    return Hex(Blake2b(all));
  }

 private:
  void Fail(const Status& failure) {
    const MutexLock lock(&mutex_);
    failure_ = failure;
    failed_ = true;
  }

  const std::vector<InputFile>& files_;
  const std::vector<Block> blocks_;
  std::vector<Digest> digests_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  Mutex mutex_;
  Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::string> HashFiles(const std::vector<InputFile>& files, int threads,
                                const std::function<void(double)>& done) {
  Hasher hasher(files);
  std::vector<std::thread> helpers;
  const size_t extra = std::min(static_cast<size_t>(std::max(threads, 1)), hasher.blocks());
  for (size_t i = 1; i < extra; ++i) helpers.emplace_back([&] { hasher.Work(nullptr); });
  hasher.Work(&done);
  for (std::thread& helper : helpers) helper.join();
  PORTICO_RETURN_IF_ERROR(hasher.failure());
  return hasher.Result();
}

std::string HashTexts(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += fmt::format("{}:{}", text.size(), text);
  return Hex(Blake2b(all)).substr(0, 40);
}

}  // namespace portico::llama
