// What threads record, as it lies in their rings and in the file of a run.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/events/event.h"
#include "base/events/recorder.h"

namespace portico::events::internal {

// 32 bytes. Kinds from kName on are no events. What does not fit is in the records behind it.
struct Record32 {
  struct Numbers {
    int64_t ticks;
    int64_t a;
  };
  static constexpr size_t kText = 16;

  Key key;
  uint16_t kind;
  union {
    Label stage;
    uint16_t length;  // of a text; its first bytes are in `text`
  };
  Label peer;
  Label tag;
  union {
    Numbers numbers;
    char text[kText];
    Key joined;
    int64_t nanoseconds;  // kMoment; `key` has the ticks
  };
};
static_assert(sizeof(Record32) == 32);

// Of an event: its second number is in the record behind it; both numbers are in `numbers.a`, the
// second one in its upper half; it is an EventGroup; the rest is which.
inline constexpr uint16_t kHasSecond = 0x8000;
inline constexpr uint16_t kPacked = 0x4000;
inline constexpr uint16_t kGroup = 0x2000;
inline constexpr uint16_t kNumber = 0x1FFF;

inline constexpr uint16_t kName = 0x7FF0;
inline constexpr uint16_t kJoin = 0x7FF1;
inline constexpr uint16_t kLeaveOut = 0x7FF2;
// Only in files. `key` is the number of the label.
inline constexpr uint16_t kLabel = 0x7FF3;
inline constexpr uint16_t kMoment = 0x7FF4;

inline bool IsEvent(const Record32& record) { return (record.kind & ~kHasSecond) < kName; }
// 0: it is none.
inline size_t EventsIn(const Record32& record) {
  if (!IsEvent(record)) return 0;
  if ((record.kind & kGroup) == 0) return 1;
  return EventsOf(static_cast<EventGroup>(record.kind & kNumber)).size();
}
inline bool IsText(const Record32& record) { return record.kind == kName || record.kind == kLabel; }

inline constexpr size_t RecordsOfText(size_t length) {
  if (length <= Record32::kText) return 1;
  return 1 + (length - Record32::kText + sizeof(Record32) - 1) / sizeof(Record32);
}

// With those behind it.
inline size_t RecordsOf(const Record32& record) {
  if (IsText(record)) return RecordsOfText(record.length);
  return (record.kind & kHasSecond) != 0 && IsEvent(record) ? 2 : 1;
}

// At the beginning of a file of records. Its bytes are in the order of the machine.
struct RecordsHead {
  static constexpr uint64_t kMagic = 0x32'63'65'72'6f'63'69'70;
  static constexpr uint64_t kOldMagic = 0x31'63'65'72'6f'63'69'70;  // without kPacked and kGroup

  uint64_t magic = kMagic;
  int64_t pid = 0;
  int64_t to_wall = 0;        // wall clock - monotonic clock
  uint64_t run_id_bytes = 0;  // of the run's id, which is behind the head
};

}  // namespace portico::events::internal
