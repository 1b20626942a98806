#include "base/events/record_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/events/tick_clock.h"

namespace portico::events::internal {
namespace {

constexpr size_t kMostRunId = 4096;
constexpr size_t kPieceRecords = 8192;

class RecordsReader {
 public:
  RecordsReader(RequestNames* names, const TakeLine& take) : names_(*names), take_(take) {}

  // How many of the records it took; the rest is not whole.
  size_t Take(const std::vector<Record32>& records) {
    size_t at = 0;
    while (at < records.size()) {
      const size_t count = RecordsOf(records[at]);
      if (count > records.size() - at) break;
      TakeOne(&records[at]);
      at += count;
    }
    waiting_.Release(names_, latest_, /*all=*/false, take_);
    return at;
  }
  void End() { waiting_.Release(names_, latest_, /*all=*/true, take_); }

 private:
  static std::string_view TextOf(const Record32* record) {
    // Goes on in the records behind it, which lie in the same array.
    return {reinterpret_cast<const char*>(record) + offsetof(Record32, text), record->length};
  }

  void TakeOne(const Record32* record) {
    switch (record->kind) {
      case kName:
        return names_.Name(record->key, std::string(TextOf(record)));
      case kJoin:
        return names_.Join(record->key, record->joined);
      case kLeaveOut:
        return names_.LeaveOut(record->key);
      case kLabel:
        if (record->key != labels_.size() || labels_.size() > UINT16_MAX) return;
        // The first two have the same numbers everywhere.
        return labels_.push_back(record->key < 2 ? static_cast<Label>(record->key)
                                                 : LabelOf(TextOf(record)));
      case kMoment:
        return scale_.Add({static_cast<int64_t>(record->key), record->nanoseconds});
      default:
        return TakeEvent(record);
    }
  }

  void TakeEvent(const Record32* record) {
    if (!IsEvent(*record)) return;  // it may be the last, whatever it says of a second
    Line line;
    line.stage = Translated(record->stage);
    line.details = {Translated(record->peer), Translated(record->tag), record->numbers.a};
    if ((record->kind & kHasSecond) != 0) {
      std::memcpy(&line.details.b, record + 1, sizeof line.details.b);
    }
    if ((record->kind & kPacked) != 0) {
      const auto both = static_cast<uint64_t>(record->numbers.a);
      line.details.a = static_cast<int64_t>(both & UINT32_MAX);
      line.details.b = static_cast<int64_t>(both >> 32);
    }
    line.nanoseconds = scale_.Nanoseconds(record->numbers.ticks);
    latest_ = std::max(latest_, line.nanoseconds);
    // What is beyond the last one is of a newer version.
    const auto number = static_cast<uint16_t>(record->kind & kNumber);
    if ((record->kind & kGroup) != 0) {
      if (number < static_cast<uint16_t>(EventGroup::kCount)) {
        TakeGroup(record->key, static_cast<EventGroup>(number), line);
      }
    } else if (number < static_cast<uint16_t>(Event::kCount)) {
      line.event = static_cast<Event>(number);
      Hand(record->key, line);
    }
  }

  void TakeGroup(Key key, EventGroup group, const Line& all) {
    for (const GroupedEvent& one : EventsOf(group)) {
      Line line = all;
      line.event = one.event;
      const EventSpec& spec = SpecOf(one.event);
      if (spec.peer.empty()) line.details.peer = 0;
      if (one.first_chunk) line.details.a = 0;
      if (spec.a.empty()) line.details.a = Details::kNothing;
      Hand(key, line);
    }
  }

  void Hand(Key key, const Line& line) {
    if (!SpecOf(line.event).of_request) return take_(line, "");
    const std::string* name = names_.Find(key);
    if (name == nullptr) return waiting_.Add(key, line);
    if (!RequestNames::IsLeftOut(*name)) take_(line, *name);
  }

  // Labels of the file's process are others than this one's.
  Label Translated(Label label) const { return label < labels_.size() ? labels_[label] : 0; }

  RequestNames& names_;
  const TakeLine& take_;
  WaitingLines waiting_;
  TickScale scale_;
  std::vector<Label> labels_;
  int64_t latest_ = 0;
};

}  // namespace

StatusOr<RecordsInput> RecordsInput::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return RecordsInput(path, fd);
  return Error(errno == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable,
               fmt::format("{} cannot be read: {}", path, std::strerror(errno)));
}

RecordsInput::RecordsInput(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

RecordsInput::RecordsInput(RecordsInput&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

RecordsInput::~RecordsInput() {
  if (fd_ >= 0) close(fd_);
}

StatusOr<size_t> RecordsInput::ReadAt(uint64_t offset, void* to, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t got =
        pread(fd_, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return Error(StatusCode::kUnavailable,
                   fmt::format("{} cannot be read: {}", path_, std::strerror(errno)));
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

StatusOr<RecordsFacts> RecordsInput::ReadFacts() const {
  const auto none = [this] {
    return Error(StatusCode::kInvalidArgument, path_ + " has no records of a profile");
  };
  RecordsFacts facts;
  PORTICO_ASSIGN_OR_RETURN(const size_t head, ReadAt(0, &facts.head, sizeof facts.head));
  const uint64_t magic = facts.head.magic;
  if (head < sizeof facts.head ||
      (magic != RecordsHead::kMagic && magic != RecordsHead::kOldMagic) ||
      facts.head.run_id_bytes > kMostRunId) {
    return none();
  }
  facts.run_id.resize(facts.head.run_id_bytes);
  PORTICO_ASSIGN_OR_RETURN(const size_t named,
                           ReadAt(sizeof facts.head, facts.run_id.data(), facts.run_id.size()));
  if (named < facts.run_id.size()) return none();
  return facts;
}

Status RecordsInput::Read(RequestNames* names, const TakeLine& take) const {
  PORTICO_ASSIGN_OR_RETURN(const RecordsFacts facts, ReadFacts());
  uint64_t offset = sizeof facts.head + facts.run_id.size();
  RecordsReader reader(names, take);
  std::vector<Record32> records;
  while (true) {
    const size_t kept = records.size();
    records.resize(kept + kPieceRecords);
    PORTICO_ASSIGN_OR_RETURN(const size_t got,
                             ReadAt(offset, &records[kept], kPieceRecords * sizeof(Record32)));
    const size_t whole = got / sizeof(Record32);
    if (whole == 0) break;
    offset += whole * sizeof(Record32);
    records.resize(kept + whole);
    const size_t taken = reader.Take(records);
    records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  reader.End();
  return OkStatus();
}

}  // namespace portico::events::internal
