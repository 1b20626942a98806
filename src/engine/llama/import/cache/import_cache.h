// The folder of imported models: "models" of the user's cache (base/cache_folder.h). One
// file a key, complete under its name and held by whoever uses it; "KEY.lock" is held by whoever is
// writing KEY, across processes; "KEY.*.tmp" is what a writer is at, or what one that died has left;
// "KEY.seal" is the hash of the file of that key, without which it is not served; "KEY.hash" is the remembered hash of
// a model's weights or of an import (hash_memory.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace portico::llama {

// What all imports together may have, beside those that are used.
inline constexpr uint64_t kDefaultImportCacheBytes = uint64_t{64} << 30;

// While it lives, ImportCache::Trim() of no process removes the file.
class ImportUse {
 public:
  // Marks the file as used now. Nothing where it is not there (any more) or cannot be locked.
  static std::optional<ImportUse> Of(const std::string& path);
  ImportUse(ImportUse&& other) noexcept;
  ImportUse& operator=(ImportUse&& other) noexcept;
  ~ImportUse();

 private:
  explicit ImportUse(int fd) : fd_(fd) {}
  int fd_;
};

class ImportCache {
 public:
  // Makes the folder if needed. Errors: neither XDG_CACHE_HOME nor HOME is set, or it cannot be
  // made.
  static StatusOr<ImportCache> Open();

  const std::string& folder() const { return folder_; }
  std::string PathOf(const std::string& key) const;
  // A new name at every call, for the holder of the key's lock.
  std::string TempPathOf(const std::string& key) const;

  // The hash that the file of that key has had since it was written ("KEY.seal"), for the holder of the key's lock.
  Status WriteSeal(const std::string& key, const std::string& hash) const;
  std::optional<std::string> ReadSeal(const std::string& key) const;

  // Removes what died writers have left: the temporary files of keys that nobody has locked.
  void RemoveLeftovers() const;

  // Removes the least recently used files until the others have at most `max_bytes`; never one that
  // is used or written.
  void Trim(uint64_t max_bytes) const;

 private:
  explicit ImportCache(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
};

// The right to write one key, between threads and processes; given up by the destructor or by the
// process's end.
class ImportLock {
 public:
  // Waits for its turn; `waiting` is called about ten times a second meanwhile.
  static StatusOr<ImportLock> Acquire(const ImportCache& cache, const std::string& key,
                                      const std::function<void()>& waiting);
  ImportLock(ImportLock&& other) noexcept;
  ImportLock& operator=(ImportLock&&) = delete;
  ~ImportLock();

 private:
  explicit ImportLock(int fd) : fd_(fd) {}
  int fd_;
};

}  // namespace portico::llama
