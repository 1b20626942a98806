// The thread that takes events from the rings and writes them, and that starts and stops runs.
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/events/line_writer.h"
#include "base/events/recorder.h"
#include "base/events/request_names.h"
#include "base/events/rings.h"
#include "base/mutex.h"

namespace portico::events {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(5);
constexpr size_t kMostCommands = 4096;

struct Command {
  std::optional<RunOptions> start;
  std::string stop;  // of which run, or any; where `start` is absent
  std::function<void(Status)> started;
  std::function<void(StatusOr<std::string>)> stopped;
};

class Collector {
 public:
  Status Send(Command command) {
    const MutexLock lock(&mutex_);
    if (ended_) return Error(StatusCode::kUnavailable, "the server is shutting down");
    if (commands_.size() >= kMostCommands) {
      return Error(StatusCode::kResourceExhausted, "too many starts and stops of profiles wait");
    }
    commands_.push_back(std::move(command));
    called_.NotifyOne();
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
    return OkStatus();
  }

  uint64_t Add(Listener listener) {
    const MutexLock lock(&listeners_mutex_);
    listeners_.emplace(++last_listener_, listener);
    if (active_) listener(&*active_);
    return last_listener_;
  }
  void Remove(uint64_t id) {
    const MutexLock lock(&listeners_mutex_);
    listeners_.erase(id);
  }

  void Shutdown() {
    std::thread thread;
    {
      const MutexLock lock(&mutex_);
      ended_ = true;
      called_.NotifyOne();
      thread = std::move(thread_);
    }
    if (thread.joinable()) thread.join();
  }

  Totals Count() {
    Totals totals;
    totals.written = written_.load(std::memory_order_relaxed);
    totals.cut = cut_.load(std::memory_order_relaxed);
    totals.runs = runs_.load(std::memory_order_relaxed);
    totals.dropped = Dropped();
    totals.running = On();
    return totals;
  }

 private:
  void Run() {
    bool ends = false;
    while (!ends) {
      std::deque<Command> commands;
      {
        const TimePoint next = Clock::now() + absl::ToChronoNanoseconds(kPeriod);
        const MutexLock lock(&mutex_);
        while (!ended_ && commands_.empty()) {
          if (!writer_) {
            called_.Wait(&mutex_);
          } else if (!called_.WaitUntil(&mutex_, next)) {
            break;
          }
        }
        ends = ended_;
        commands = std::exchange(commands_, {});
      }
      for (Command& command : commands) Do(std::move(command));
      if (writer_) Collect();
    }
    if (writer_) End();
  }

  void Do(Command command) {
    if (command.start) {
      const Status status = Begin(*std::move(command.start));
      command.started(status);
      return;
    }
    const bool runs = writer_ && (command.stop.empty() || command.stop == options_.run_id);
    std::string stopped;
    if (runs) {
      stopped = options_.run_id;
      End();
    }
    command.stopped(std::move(stopped));
  }

  Status Begin(RunOptions options) {
    if (writer_ && options.run_id == options_.run_id) return OkStatus();
    PORTICO_ASSIGN_OR_RETURN(LineWriter writer, LineWriter::Open(options));
    if (writer_) {
      // Threads go on: what they record from now on is the next run's.
      Collect();
      Finish();
    }
    options_ = std::move(options);
    writer_.emplace(std::move(writer));
    writer_->Begin();
    dropped_before_ = Dropped();
    noted_written_ = noted_cut_ = 0;
    if (++run_ == 0) run_ = 1;
    runs_.fetch_add(1, std::memory_order_relaxed);
    internal::running_now.store(run_, std::memory_order_seq_cst);
    Tell(&options_);
    return OkStatus();
  }

  void End() {
    internal::running_now.store(0, std::memory_order_seq_cst);
    for (internal::Ring* ring : internal::AllRings().All()) {
      while (ring->inside.load(std::memory_order_seq_cst)) std::this_thread::yield();
    }
    Collect();
    Finish();
    Tell(nullptr);
  }

  // What has been collected is all of the run.
  void Finish() {
    waiting_.Release(names_, 0, /*all=*/true, &*writer_);
    writer_->Close(Dropped() - dropped_before_);
    Note();
    writer_.reset();
  }

  void Collect() {
    for (internal::Ring* ring : internal::AllRings().All()) {
      Drain(ring);
      internal::AllRings().Recycle(ring);
    }
    waiting_.Release(names_, Clock::now().time_since_epoch().count(), /*all=*/false, &*writer_);
    writer_->Flush();
    Note();
  }

  // What the last flush wrote is in the totals.
  void Note() {
    const uint64_t written = writer_->written();
    const uint64_t cut = writer_->cut();
    written_.fetch_add(written - noted_written_, std::memory_order_relaxed);
    cut_.fetch_add(cut - noted_cut_, std::memory_order_relaxed);
    noted_written_ = written;
    noted_cut_ = cut;
  }

  void Drain(internal::Ring* ring) {
    const uint64_t head = ring->head.load(std::memory_order_acquire);
    uint64_t tail = ring->tail.load(std::memory_order_relaxed);
    while (tail != head) {
      const internal::Record64& record = ring->records[tail % internal::Ring::kSize];
      ++tail;
      if (record.kind == internal::kName) {
        std::string name(record.text, record.length);
        for (uint16_t more = record.more; more > 0 && tail != head; --more, ++tail) {
          const internal::Record64& next = ring->records[tail % internal::Ring::kSize];
          name.append(next.text, next.length);
        }
        names_.Name(record.key, std::move(name));
      } else if (record.kind == internal::kLeaveOut) {
        names_.LeaveOut(record.key);
      } else if (record.kind == internal::kJoin) {
        names_.Join(record.key, record.joined);
      } else {
        Take(record);
      }
    }
    ring->tail.store(tail, std::memory_order_release);
  }

  void Take(const internal::Record64& record) {
    Line line;
    line.event = static_cast<Event>(record.kind);
    line.stage = record.stage;
    line.details = {record.peer, record.tag, record.numbers.a, record.numbers.b};
    line.nanoseconds = record.numbers.nanoseconds;
    if (!SpecOf(line.event).of_request) return writer_->Add(line, "");
    const std::string* name = names_.Find(record.key);
    if (name == nullptr) return waiting_.Add(record.key, line);
    if (!RequestNames::IsLeftOut(*name)) writer_->Add(line, *name);
  }

  static uint64_t Dropped() {
    uint64_t dropped = internal::AllRings().homeless.load(std::memory_order_relaxed);
    for (const internal::Ring* ring : internal::AllRings().All()) {
      dropped += ring->dropped.load(std::memory_order_relaxed);
    }
    return dropped;
  }

  void Tell(const RunOptions* runs) {
    const MutexLock lock(&listeners_mutex_);
    active_ = runs == nullptr ? std::nullopt : std::optional<RunOptions>(*runs);
    for (const auto& [id, listener] : listeners_) listener(runs);
  }

  Mutex mutex_;
  CondVar called_;
  std::deque<Command> commands_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);

  Mutex listeners_mutex_;
  std::map<uint64_t, Listener> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  uint64_t last_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 0;
  std::optional<RunOptions> active_ ABSL_GUARDED_BY(listeners_mutex_);

  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> cut_{0};
  std::atomic<uint64_t> runs_{0};

  // The thread's own.
  RunOptions options_;
  std::optional<LineWriter> writer_;
  RequestNames names_;
  WaitingLines waiting_;
  uint32_t run_ = 0;
  uint64_t dropped_before_ = 0;
  uint64_t noted_written_ = 0;
  uint64_t noted_cut_ = 0;
};

Collector& TheCollector() {
  static Collector* const collector = new Collector();  // threads may outlive main()
  return *collector;
}

}  // namespace

void Start(RunOptions options, std::function<void(Status)> done) {
  Command command;
  command.start = std::move(options);
  command.started = done;
  const Status sent = TheCollector().Send(std::move(command));
  if (!sent.ok()) done(sent);
}

void Stop(std::string run_id, std::function<void(StatusOr<std::string>)> done) {
  Command command;
  command.stop = std::move(run_id);
  command.stopped = done;
  const Status sent = TheCollector().Send(std::move(command));
  if (!sent.ok()) done(sent);
}

uint64_t AddListener(Listener listener) { return TheCollector().Add(std::move(listener)); }
void RemoveListener(uint64_t id) { TheCollector().Remove(id); }
Totals Count() { return TheCollector().Count(); }
void Shutdown() { TheCollector().Shutdown(); }

}  // namespace portico::events
