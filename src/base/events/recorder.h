// Records the events of requests while a profile runs.
//
//   if (events::On()) events::Record(Event::kStageHopSent, key, stage, {.peer = next});
//
// A thread writes its events into a ring of its own, without a lock; one thread takes them from all
// rings every few milliseconds and writes them to a file as they are (record_file.h). When the run
// has stopped, lines are made of them (line_writer.h). An event costs one relaxed load while nothing
// is recorded. While a profile runs it, or a group of them, costs a read of the clock and 32 bytes;
// what finds its ring full is counted and lost.
//
// Starting and stopping are work of the writing thread: who asks is told later and never waits. No
// event is lost between the two: a stop waits until no thread is inside Record().
//
// All functions are thread safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "base/events/event.h"
#include "base/status.h"

namespace portico::events {

// Names what an event belongs to: a request, or one of its streams of tokens.
using Key = uint64_t;
inline constexpr Key kNoKey = 0;
// A key for a request, never used twice.
Key NextKey();
// The key of a stream of tokens: it stands for the request that Join() tells.
inline Key StreamKey(uint64_t stream) { return stream | uint64_t{1} << 63; }

// The name of a stage, a worker or a modality. Takes a lock: look it up once. At most 65,535
// different ones, the rest are "other".
using Label = uint16_t;
Label LabelOf(std::string_view name);
std::string_view NameOf(Label label);
size_t LabelCount();

// Stages that every server has.
extern const Label kFrontend;     // of a model server: from its sockets to its engine and back
extern const Label kEngine;       // what computes tokens
extern const Label kCoordinator;  // of a pipeline
extern const Label kGateway;

// The stage that this process' sockets belong to: kFrontend, unless it is set before they open.
Label Home();
void SetHome(Label label);

struct Details {
  Label peer = 0;  // 0: none
  Label tag = 0;
  int64_t a = kNothing;
  int64_t b = kNothing;

  static constexpr int64_t kNothing = INT64_MIN;
};

namespace internal {
// The number of the run, 0 while nothing is recorded.
inline std::atomic<uint32_t> running_now{0};
void Record(Event event, Key key, Label stage, const Details& details);
void Record(EventGroup group, Key key, Label stage, const Details& details);
void Text(uint16_t kind, Key key, std::string_view text);
}  // namespace internal

inline bool On() { return internal::running_now.load(std::memory_order_relaxed) != 0; }

inline void Record(Event event, Key key, Label stage, const Details& details = {}) {
  if (On()) internal::Record(event, key, stage, details);
}
inline void Record(EventGroup group, Key key, Label stage, const Details& details = {}) {
  if (On()) internal::Record(group, key, stage, details);
}

// What the request is called in the lines; empty: a name is made of its key, as for a request that
// has none within two seconds. The first name stays. At most 320 bytes of it are kept.
void Name(Key key, std::string_view request_id);
// Nothing of the request is written, neither what was nor what will be recorded: it is about the
// profile itself.
void LeaveOut(Key key);
// `stream`, a StreamKey(), is part of the request.
void Join(Key stream, Key request);

struct RunOptions {
  std::string run_id;
  std::string directory;  // made where it is absent
  std::string stage;      // the first name in the file's name: "frontend", "coordinator", …
  // What is not this recorder's own but belongs to the run: where torch traces go; empty: none.
  std::string trace_path_template;
  // Of this process' lines; what is beyond is counted. Until they are there, its records may take half
  // of that beside them.
  int64_t max_bytes = int64_t{256} << 20;
};

// Starts recording for <directory>/events_<stage>_<pid>.jsonl. A run of the same name goes on;
// one of another name ends first. It does not wait for the lines of former runs, unless those of
// many are still to be written. `done` is called on the writing thread, which must not be held up.
// RESOURCE_EXHAUSTED: too many starts and stops wait.
void Start(RunOptions options, std::function<void(Status)> done);

// Ends the run of that name, or any where it is empty. `done` gets the run's name, or "" where
// nothing was stopped, on a thread of the recorder. There are the lines of all former runs of this
// process then.
void Stop(std::string run_id, std::function<void(StatusOr<std::string>)> done);

// Is told of every start (with what runs) and stop (null), on the writing thread. Once `Remove` has
// returned it is not called any more. A new one is told of what runs already.
using Listener = std::function<void(const RunOptions*)>;
uint64_t AddListener(Listener listener);
void RemoveListener(uint64_t id);

// Since the start of the process.
struct Totals {
  uint64_t written = 0;  // lines, counted when their run has ended
  uint64_t dropped = 0;  // events that found their ring full
  uint64_t cut = 0;      // events beyond max_bytes, or that could not be written; as `written`
  uint64_t runs = 0;
  bool running = false;
};
Totals Count();

// Ends what runs and the writing thread, before the process does. A later Start() fails.
void Shutdown();

// The request that this thread is working on, for code that is called with nothing that tells.
struct Current {
  Key key = kNoKey;
  std::string request_id;  // empty: it has no name yet
};
const Current& OnThread();

// While it lives. Costs nothing while `current.key` is kNoKey.
class Scope {
 public:
  explicit Scope(Current current);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  bool set_ = false;
  Current before_;
};

// The task, to be run with the request of the thread that this is called on.
absl::AnyInvocable<void()> Carrying(absl::AnyInvocable<void()> task);

// Two events around what this thread does for its request, if it has one.
class Span {
 public:
  Span(Event start, Event end, Label stage) {
    if (!On() || OnThread().key == kNoKey) return;
    key_ = OnThread().key;
    end_ = end;
    stage_ = stage;
    Record(start, key_, stage_);
  }
  ~Span() {
    if (key_ != kNoKey) Record(end_, key_, stage_, {.a = a_});
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  // What the end tells.
  void Tell(int64_t a) { a_ = a; }

 private:
  Key key_ = kNoKey;
  Event end_{};
  Label stage_ = 0;
  int64_t a_ = Details::kNothing;
};

}  // namespace portico::events
