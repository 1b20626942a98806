// The file of a run's records: what threads have recorded, as it lay in their rings, while the run
// goes on. A process that is killed leaves it; one that ends makes lines of it and removes it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/events/rings.h"
#include "base/status.h"

namespace portico::events::internal {

// Used by one thread.
class RecordFile {
 public:
  // It must not be there yet. `max_bytes`: what is beyond is counted.
  static StatusOr<RecordFile> Open(const std::string& path, const RecordsHead& head,
                                   std::string_view run_id, int64_t max_bytes);
  RecordFile(RecordFile&& other) noexcept;
  RecordFile& operator=(RecordFile&&) = delete;
  ~RecordFile();

  // Comes before what was recorded until now.
  void AddMoment();
  // The ring's records from `tail` to `head`.
  void Add(const Ring& ring, uint64_t tail, uint64_t head);

  // Its descriptor, for who reads it from now on.
  int Release() { return std::exchange(fd_, -1); }

  // Events that are not in the file.
  uint64_t cut() const { return cut_; }

 private:
  RecordFile() = default;
  bool Write(const void* bytes, size_t size);
  // Those that are not in the file yet.
  void AddLabels();

  int fd_ = -1;
  int64_t bytes_ = 0;
  int64_t max_bytes_ = 0;
  bool full_ = false;
  size_t labels_ = 0;  // in the file
  uint64_t cut_ = 0;
};

}  // namespace portico::events::internal
