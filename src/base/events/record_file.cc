#include "base/events/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/events/tick_clock.h"
#include "base/log.h"

namespace portico::events::internal {

StatusOr<RecordFile> RecordFile::Open(const std::string& path, const RecordsHead& head,
                                      std::string_view run_id, int64_t max_bytes) {
  RecordFile file;
  file.fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
  if (file.fd_ < 0) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("{} cannot be written: {}", path, std::strerror(errno)), "event_dir");
  }
  RecordsHead whole = head;
  whole.run_id_bytes = run_id.size();
  file.max_bytes_ = max_bytes;
  if (!file.Write(&whole, sizeof whole) || !file.Write(run_id.data(), run_id.size()) ||
      !file.AddMoment()) {
    unlink(path.c_str());
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("{} cannot be written: {}", path, std::strerror(file.error_)),
                 "event_dir");
  }
  return file;
}

RecordFile::RecordFile(RecordFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      bytes_(other.bytes_),
      max_bytes_(other.max_bytes_),
      written_(other.written_),
      error_(other.error_),
      full_(other.full_),
      labels_(other.labels_),
      cut_(other.cut_) {}

RecordFile::~RecordFile() {
  if (fd_ >= 0) close(fd_);
}

bool RecordFile::Write(const void* bytes, size_t size) {
  if (full_) return false;
  const char* at = static_cast<const char*>(bytes);
  bytes_ += static_cast<int64_t>(size);
  while (size > 0) {
    const ssize_t wrote = write(fd_, at, size);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      error_ = wrote < 0 ? errno : ENOSPC;
      LogWarning("a profile's records cannot be written: {}; later events are only counted",
                 std::strerror(error_));
      full_ = true;
      return false;
    }
    at += wrote;
    size -= static_cast<size_t>(wrote);
    written_ += static_cast<uint64_t>(wrote);
  }
  return true;
}

bool RecordFile::AddMoment() {
  const Moment now = Now();
  Record32 record{};
  record.key = static_cast<Key>(now.ticks);
  record.kind = kMoment;
  record.nanoseconds = now.nanoseconds;
  return Write(&record, sizeof record);
}

void RecordFile::AddLabels() {
  for (const size_t count = LabelCount(); labels_ < count; ++labels_) {
    const std::string_view name = NameOf(static_cast<Label>(labels_)).substr(0, UINT16_MAX);
    std::string bytes(RecordsOfText(name.size()) * sizeof(Record32), '\0');
    Record32 record{};
    record.key = labels_;
    record.kind = kLabel;
    record.length = static_cast<uint16_t>(name.size());
    std::memcpy(bytes.data(), &record, sizeof record);
    name.copy(bytes.data() + offsetof(Record32, text), name.size());
    Write(bytes.data(), bytes.size());
  }
}

void RecordFile::Add(const Ring& ring, uint64_t tail, uint64_t head) {
  AddLabels();
  const int64_t left = full_ ? 0 : std::max<int64_t>(max_bytes_ - bytes_, 0);
  const uint64_t room = static_cast<uint64_t>(left) / sizeof(Record32);
  uint64_t end = head;
  if (head - tail > room) {
    if (!full_)
      LogWarning("a profile's records have reached their bound; later events are only counted");
    end = tail;
    for (uint64_t next = tail; next < head;) {
      next += RecordsOf(ring.At(next));
      if (next - tail <= room) end = next;
    }
  }
  const uint64_t before = written_;
  for (uint64_t next = tail; next < end;) {
    const uint64_t count = std::min(end - next, Ring::kSize - next % Ring::kSize);
    if (!Write(&ring.At(next), count * sizeof(Record32))) break;
    next += count;
  }
  full_ = full_ || end < head;
  // A write that failed may have left the first of its records in the file.
  const uint64_t written = tail + (written_ - before) / sizeof(Record32);
  for (uint64_t next = tail; written < head && next < head;) {
    const Record32& record = ring.At(next);
    next += RecordsOf(record);
    if (next > written) cut_ += EventsIn(record);
  }
}

}  // namespace portico::events::internal
