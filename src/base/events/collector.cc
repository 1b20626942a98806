// The thread that takes events from the rings and writes them, and that starts and stops runs. Lines
// are made of a run that has ended by another one, the converter's: a stop is answered when they are
// there, and a start does not wait for them.
#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/events/converter.h"
#include "base/events/line_writer.h"
#include "base/events/record_file.h"
#include "base/events/record_reader.h"
#include "base/events/recorder.h"
#include "base/events/rings.h"
#include "base/events/tick_clock.h"
#include "base/mutex.h"

namespace portico::events {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(5);
constexpr size_t kMostCommands = 4096;
// Runs without their lines, each with two open files: the next one waits.
constexpr size_t kMostUnconverted = 64;

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
    totals.written = converter_.written();
    totals.cut = converter_.cut();
    totals.runs = runs_.load(std::memory_order_relaxed);
    totals.dropped = Dropped();
    totals.running = On();
    return totals;
  }

 private:
  void Run() {
    std::optional<Command> command;
    while (NextTurn(&command)) {
      if (command) Do(*std::move(command));
      if (records_) Collect();
    }
    if (records_) End();
    converter_.Join();
  }

  // The next command, or none where it is only time to collect. False: all is done that was asked
  // for before the end.
  bool NextTurn(std::optional<Command>* command) {
    command->reset();
    const TimePoint next = Clock::now() + absl::ToChronoNanoseconds(kPeriod);
    const MutexLock lock(&mutex_);
    while (commands_.empty() || MustWait(commands_.front())) {
      if (ended_ && commands_.empty()) return false;
      if (!records_ && commands_.empty()) {
        called_.Wait(&mutex_);
      } else if (!called_.WaitUntil(&mutex_, next)) {
        return true;
      }
    }
    *command = std::move(commands_.front());
    commands_.pop_front();
    return true;
  }

  bool MustWait(const Command& command) {
    return command.start && converter_.waiting() >= kMostUnconverted;
  }

  void Do(Command command) {
    if (command.start) {
      const Status status = Begin(*std::move(command.start));
      command.started(status);
      return;
    }
    const bool runs = records_ && (command.stop.empty() || command.stop == options_.run_id);
    const std::string stopped = runs ? options_.run_id : "";
    if (runs) End();
    converter_.Then([stopped, done = std::move(command.stopped)] { done(stopped); });
  }

  Status Begin(RunOptions options) {
    if (records_ && options.run_id == options_.run_id) return OkStatus();
    if (run_ == 0) {
      internal::PrepareOrder();
      internal::ChooseTicks();
    }
    PORTICO_ASSIGN_OR_RETURN(LineWriter writer, LineWriter::Open(options));
    PORTICO_ASSIGN_OR_RETURN(
        internal::RecordFile records,
        internal::RecordFile::Open(writer.RecordsPath(), writer.Head(), options.run_id,
                                   options.max_bytes / kRecordsShare));
    if (records_) {
      // Threads go on: what they record from now on is the next run's.
      Collect();
      Finish();
    }
    options_ = std::move(options);
    writer_.emplace(std::move(writer));
    records_.emplace(std::move(records));
    converter_.Begin(&*writer_);
    dropped_before_ = Dropped();
    if (++run_ == 0) run_ = 1;
    runs_.fetch_add(1, std::memory_order_relaxed);
    internal::running_now.store(run_, std::memory_order_seq_cst);
    Tell(&options_);
    return OkStatus();
  }

  void End() {
    internal::running_now.store(0, std::memory_order_seq_cst);
    internal::AwaitOrder();
    for (internal::Ring* ring : internal::AllRings().All()) {
      while (ring->inside.load(std::memory_order_seq_cst)) std::this_thread::yield();
    }
    Collect();
    Tell(nullptr);
    Finish();
  }

  // What has been collected is all of the run.
  void Finish() {
    writer_->NoteEnd();
    std::string path = writer_->RecordsPath();
    converter_.Add({.writer = *std::move(writer_),
                    .records = internal::RecordsInput(std::move(path), records_->Release()),
                    .dropped = Dropped() - dropped_before_,
                    .cut = records_->cut()});
    writer_.reset();
    records_.reset();
  }

  void Collect() {
    const std::vector<internal::Ring*> rings = internal::AllRings().All();
    std::vector<uint64_t> heads;
    heads.reserve(rings.size());
    bool any = false;
    for (const internal::Ring* ring : rings) {
      heads.push_back(ring->head.load(std::memory_order_acquire));
      any = any || heads.back() != ring->tail.load(std::memory_order_relaxed);
    }
    if (any) records_->AddMoment();
    for (size_t i = 0; i < rings.size(); ++i) {
      const uint64_t tail = rings[i]->tail.load(std::memory_order_relaxed);
      if (heads[i] != tail) {
        records_->Add(*rings[i], tail, heads[i]);
        rings[i]->tail.store(heads[i], std::memory_order_release);
      }
      internal::AllRings().Recycle(rings[i]);
    }
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

  // Of the bytes of a run: lines of 180 bytes and more reach the bound before their records do.
  static constexpr int64_t kRecordsShare = 5;

  Mutex mutex_;
  CondVar called_;
  std::deque<Command> commands_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);

  Mutex listeners_mutex_;
  std::map<uint64_t, Listener> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  uint64_t last_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 0;
  std::optional<RunOptions> active_ ABSL_GUARDED_BY(listeners_mutex_);

  std::atomic<uint64_t> runs_{0};

  // The thread's own.
  RunOptions options_;
  std::optional<LineWriter> writer_;  // both while a run goes on
  std::optional<internal::RecordFile> records_;
  uint32_t run_ = 0;
  uint64_t dropped_before_ = 0;
  internal::Converter converter_;
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
