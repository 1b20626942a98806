// Reads the file of a run's records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/events/record.h"
#include "base/events/request_names.h"
#include "base/status.h"

namespace portico::events::internal {

struct RecordsFacts {
  RecordsHead head;
  std::string run_id;
};

// An open file of records, which can be read though its name is gone. It is read from its beginning
// each time.
class RecordsInput {
 public:
  // NOT_FOUND: there is no such file; UNAVAILABLE: it cannot be read.
  static StatusOr<RecordsInput> Open(const std::string& path);
  // Takes the descriptor.
  RecordsInput(std::string path, int fd);
  RecordsInput(RecordsInput&& other) noexcept;
  RecordsInput& operator=(RecordsInput&&) = delete;
  ~RecordsInput();

  const std::string& path() const { return path_; }
  // INVALID_ARGUMENT: it is no such file; UNAVAILABLE: it cannot be read.
  StatusOr<RecordsFacts> ReadFacts() const;
  // Each event with the name of its request, empty where it has none; nearly in the order in which
  // they were recorded. `names` knows the requests of former runs of the process. A file that ends
  // within a record ends before it. Where it cannot be read to its end, events may be left out.
  Status Read(RequestNames* names, const TakeLine& take) const;

 private:
  // As many bytes as there are, up to `size`.
  StatusOr<size_t> ReadAt(uint64_t offset, void* to, size_t size) const;

  std::string path_;
  int fd_ = -1;
};

}  // namespace portico::events::internal
