#include "base/events/record_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "base/events/tick_clock.h"

namespace portico::events::internal {
namespace {

constexpr size_t kMostRunId = 4096;
constexpr size_t kPieceRecords = 8192;

Status NoRecords(const std::string& path) {
  return Error(StatusCode::kInvalidArgument, path + " has no records of a profile");
}

StatusOr<RecordsFacts> ReadFactsFrom(std::istream& file, const std::string& path) {
  RecordsFacts facts;
  file.read(reinterpret_cast<char*>(&facts.head), sizeof facts.head);
  if (!file || facts.head.magic != RecordsHead::kMagic || facts.head.run_id_bytes > kMostRunId) {
    return NoRecords(path);
  }
  facts.run_id.resize(facts.head.run_id_bytes);
  file.read(facts.run_id.data(), static_cast<std::streamsize>(facts.run_id.size()));
  if (!file) return NoRecords(path);
  return facts;
}

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
    Line line;
    const auto event = static_cast<uint16_t>(record->kind & ~kHasSecond);
    if (event >= static_cast<uint16_t>(Event::kCount)) return;  // of a newer version
    line.event = static_cast<Event>(event);
    line.stage = Translated(record->stage);
    line.details = {Translated(record->peer), Translated(record->tag), record->numbers.a};
    if ((record->kind & kHasSecond) != 0) {
      std::memcpy(&line.details.b, record + 1, sizeof line.details.b);
    }
    line.nanoseconds = scale_.Nanoseconds(record->numbers.ticks);
    latest_ = std::max(latest_, line.nanoseconds);
    if (!SpecOf(line.event).of_request) return take_(line, "");
    const std::string* name = names_.Find(record->key);
    if (name == nullptr) return waiting_.Add(record->key, line);
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

StatusOr<RecordsFacts> ReadRecordsFacts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return ReadFactsFrom(file, path);
}

Status ReadRecords(const std::string& path, RequestNames* names, const TakeLine& take) {
  std::ifstream file(path, std::ios::binary);
  PORTICO_RETURN_IF_ERROR(ReadFactsFrom(file, path).status());
  RecordsReader reader(names, take);
  std::vector<Record32> records;
  while (file) {
    const size_t kept = records.size();
    records.resize(kept + kPieceRecords);
    file.read(reinterpret_cast<char*>(&records[kept]), kPieceRecords * sizeof(Record32));
    records.resize(kept + static_cast<size_t>(file.gcount()) / sizeof(Record32));
    const size_t taken = reader.Take(records);
    records.erase(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(taken));
  }
  reader.End();
  return OkStatus();
}

}  // namespace portico::events::internal
