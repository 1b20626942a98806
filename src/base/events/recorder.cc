#include "base/events/recorder.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "base/events/record.h"
#include "base/events/rings.h"
#include "base/events/tick_clock.h"
#include "base/mutex.h"

namespace portico::events {
namespace {

constexpr size_t kMostLabels = 65535;
constexpr size_t kMostText = 320;

class Labels {
 public:
  Label Of(std::string_view name) {
    const MutexLock lock(&mutex_);
    if (const auto known = by_name_.find(name); known != by_name_.end()) return known->second;
    if (names_.size() >= kMostLabels) return 1;
    const auto label = static_cast<Label>(names_.size());
    by_name_.emplace(names_.emplace_back(name), label);
    return label;
  }
  // Names stay where they are.
  std::string_view NameOf(Label label) {
    const MutexLock lock(&mutex_);
    return label < names_.size() ? names_[label] : std::string_view();
  }
  size_t Count() {
    const MutexLock lock(&mutex_);
    return names_.size();
  }

 private:
  Mutex mutex_;
  std::deque<std::string> names_ ABSL_GUARDED_BY(mutex_) = {"", "other"};
  absl::flat_hash_map<std::string_view, Label> by_name_ ABSL_GUARDED_BY(mutex_);
};

Labels& AllLabels() {
  static Labels* const labels = new Labels();
  return *labels;
}

thread_local Current current;

void Enter(internal::Ring* ring) {
  if (internal::needs_fence.load(std::memory_order_relaxed)) {
    ring->inside.store(true, std::memory_order_seq_cst);
  } else {
    ring->inside.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
}

// `fill` makes `count` records, of so many `events`, from a place of the ring on, where a run goes on.
template <typename Fill>
void Put(uint64_t count, uint64_t events, const Fill& fill) {
  internal::Ring* ring = internal::mine;
  if (ring == nullptr) ring = internal::AllRings().Mine();
  if (ring == nullptr) {
    internal::AllRings().homeless.fetch_add(events, std::memory_order_relaxed);
    return;
  }
  // Whoever stops the run sees this, or this thread sees that the run has stopped.
  Enter(ring);
  if (internal::running_now.load(std::memory_order_seq_cst) != 0) {
    const uint64_t head = ring->head.load(std::memory_order_relaxed);
    const uint64_t used = head - ring->tail.load(std::memory_order_acquire);
    if (used + count > internal::Ring::kSize) {
      ring->dropped.fetch_add(events, std::memory_order_relaxed);
    } else {
      fill(ring, head);
      ring->head.store(head + count, std::memory_order_release);
    }
  }
  ring->inside.store(false, std::memory_order_release);
}

}  // namespace

const Label kFrontend = LabelOf("frontend");
const Label kEngine = LabelOf("engine");
const Label kCoordinator = LabelOf("coordinator");
const Label kGateway = LabelOf("gateway");

Key NextKey() {
  static std::atomic<Key> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

namespace {
std::atomic<Label> home{0};
}  // namespace

Label Home() {
  const Label set = home.load(std::memory_order_relaxed);
  return set == 0 ? kFrontend : set;
}
void SetHome(Label label) { home.store(label, std::memory_order_relaxed); }

Label LabelOf(std::string_view name) { return AllLabels().Of(name); }
std::string_view NameOf(Label label) { return AllLabels().NameOf(label); }
size_t LabelCount() { return AllLabels().Count(); }

namespace {

bool FitsHalf(int64_t number) { return number >= 0 && number <= int64_t{UINT32_MAX}; }

void PutEvents(unsigned kind, uint64_t events, Key key, Label stage, const Details& details) {
  const int64_t ticks = internal::Ticks();
  int64_t a = details.a;
  const bool packed = details.b != Details::kNothing && FitsHalf(a) && FitsHalf(details.b);
  const bool has_second = details.b != Details::kNothing && !packed;
  if (packed) a = static_cast<int64_t>(static_cast<uint64_t>(details.b) << 32) | a;
  kind |= (packed ? internal::kPacked : 0U) | (has_second ? internal::kHasSecond : 0U);
  Put(has_second ? 2 : 1, events, [&](internal::Ring* ring, uint64_t at) {
    internal::Record32& record = ring->At(at);
    record.key = key;
    record.kind = static_cast<uint16_t>(kind);
    record.stage = stage;
    record.peer = details.peer;
    record.tag = details.tag;
    record.numbers = {ticks, a};
    if (has_second) std::memcpy(&ring->At(at + 1), &details.b, sizeof details.b);
  });
}

}  // namespace

void internal::Record(Event event, Key key, Label stage, const Details& details) {
  PutEvents(static_cast<unsigned>(event), 1, key, stage, details);
}

void internal::Record(EventGroup group, Key key, Label stage, const Details& details) {
  PutEvents(static_cast<unsigned>(group) | kGroup, EventsOf(group).size(), key, stage, details);
}

void internal::Text(uint16_t kind, Key key, std::string_view text) {
  text = text.substr(0, kMostText);
  Put(RecordsOfText(text.size()), 1, [&](Ring* ring, uint64_t at) {
    Record32& record = ring->At(at);
    record.key = key;
    record.kind = kind;
    record.length = static_cast<uint16_t>(text.size());
    std::string_view rest = text;
    const auto copy = [&rest](void* to, size_t most) {
      const size_t bytes = std::min(most, rest.size());
      if (bytes > 0) std::memcpy(to, rest.data(), bytes);
      rest.remove_prefix(bytes);
    };
    copy(record.text, Record32::kText);
    while (!rest.empty()) copy(&ring->At(++at), sizeof(Record32));
  });
}

void Name(Key key, std::string_view request_id) {
  if (On() && key != kNoKey) internal::Text(internal::kName, key, request_id);
}

void LeaveOut(Key key) {
  if (On() && key != kNoKey) internal::Text(internal::kLeaveOut, key, {});
}

void Join(Key stream, Key request) {
  if (!On()) return;
  Put(1, 1, [&](internal::Ring* ring, uint64_t at) {
    internal::Record32& record = ring->At(at);
    record.key = stream;
    record.kind = internal::kJoin;
    record.joined = request;
  });
}

const Current& OnThread() { return current; }

absl::AnyInvocable<void()> Carrying(absl::AnyInvocable<void()> task) {
  if (current.key == kNoKey) return task;
  return [task = std::move(task), mine = current]() mutable {
    const Scope scope(std::move(mine));
    task();
  };
}

Scope::Scope(Current now) {
  if (now.key == kNoKey) return;
  set_ = true;
  before_ = std::exchange(current, std::move(now));
}

Scope::~Scope() {
  if (set_) current = std::move(before_);
}

}  // namespace portico::events
