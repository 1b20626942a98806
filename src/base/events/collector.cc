// The thread that takes events from the rings and writes them, and that starts and stops runs; and
// the one that makes lines of what a run has written. That costs ten times as much as to record and
// to write it, so it waits until the run has ended. What starts or stops a run waits for it, while
// the events of a run that has begun meanwhile are taken.
#include <unistd.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/events/line_writer.h"
#include "base/events/record_file.h"
#include "base/events/record_reader.h"
#include "base/events/recorder.h"
#include "base/events/request_names.h"
#include "base/events/rings.h"
#include "base/events/tick_clock.h"
#include "base/log.h"
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
    std::optional<Command> command;
    while (NextTurn(&command)) {
      if (command) Do(*std::move(command));
      if (records_) Collect();
    }
    if (records_) End([] {});
    if (converter_.joinable()) converter_.join();
  }

  // The next command, or none where it is only time to collect. False: all is done that was asked
  // for before the end.
  bool NextTurn(std::optional<Command>* command) {
    command->reset();
    const TimePoint next = Clock::now() + absl::ToChronoNanoseconds(kPeriod);
    const MutexLock lock(&mutex_);
    while (converting_ || commands_.empty()) {
      if (ended_ && !converting_) return false;
      if (!records_) {
        called_.Wait(&mutex_);
      } else if (!called_.WaitUntil(&mutex_, next)) {
        return true;
      }
    }
    *command = std::move(commands_.front());
    commands_.pop_front();
    return true;
  }

  void Do(Command command) {
    if (command.start) {
      const Status status = Begin(*std::move(command.start));
      command.started(status);
      return;
    }
    const bool runs = records_ && (command.stop.empty() || command.stop == options_.run_id);
    if (!runs) return command.stopped("");
    End([run = options_.run_id, stopped = std::move(command.stopped)] { stopped(run); });
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
      const bool same_files =
          options.directory == options_.directory && options.stage == options_.stage;
      Finish(/*facts=*/!same_files, [] {});
    }
    options_ = std::move(options);
    writer_.emplace(std::move(writer));
    records_.emplace(std::move(records));
    writer_->Begin();
    dropped_before_ = Dropped();
    if (++run_ == 0) run_ = 1;
    runs_.fetch_add(1, std::memory_order_relaxed);
    internal::running_now.store(run_, std::memory_order_seq_cst);
    Tell(&options_);
    return OkStatus();
  }

  void End(std::function<void()> done) {
    internal::running_now.store(0, std::memory_order_seq_cst);
    internal::AwaitOrder();
    for (internal::Ring* ring : internal::AllRings().All()) {
      while (ring->inside.load(std::memory_order_seq_cst)) std::this_thread::yield();
    }
    Collect();
    Tell(nullptr);
    Finish(/*facts=*/true, std::move(done));
  }

  // What has been collected is all of the run. Its facts are told unless the next run's are in the
  // same file.
  void Finish(bool facts, std::function<void()> done) {
    writer_->NoteEnd(records_->bytes());
    std::string path = writer_->RecordsPath();
    auto ended = std::make_shared<Ended>(Ended{.writer = *std::move(writer_),
                                               .path = std::move(path),
                                               .dropped = Dropped() - dropped_before_,
                                               .cut = records_->cut(),
                                               .facts = facts,
                                               .done = std::move(done)});
    writer_.reset();
    records_.reset();
    if (converter_.joinable()) converter_.join();
    {
      const MutexLock lock(&mutex_);
      converting_ = true;
    }
    const auto convert = [this, ended] {
      MakeLines(*ended);
      const MutexLock lock(&mutex_);
      converting_ = false;
      called_.NotifyOne();
    };
    try {
      converter_ = std::thread(convert);
    } catch (const std::system_error&) {
      convert();
    }
  }

  // A run that has ended, and what is told when its lines are there.
  struct Ended {
    LineWriter writer;
    std::string path;  // of its records
    uint64_t dropped = 0;
    uint64_t cut = 0;
    bool facts = true;
    std::function<void()> done;
  };
  void MakeLines(Ended& ended) {
    const Status read = internal::ReadRecords(
        ended.path, &names_, [&ended](const Line& line, std::string_view request_id) {
          ended.writer.Add(line, request_id);
        });
    if (!read.ok()) LogWarning("no lines of a profile: {}", MessageOf(read));
    ended.writer.Close(ended.cut);
    if (ended.facts) ended.writer.WriteEnd(ended.dropped);
    unlink(ended.path.c_str());
    written_.fetch_add(ended.writer.written(), std::memory_order_relaxed);
    cut_.fetch_add(ended.writer.cut(), std::memory_order_relaxed);
    ended.done();
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

  // Of the bytes of a run, as an event's line takes six times as much as its record.
  static constexpr int64_t kRecordsShare = 6;

  Mutex mutex_;
  CondVar called_;
  std::deque<Command> commands_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool converting_ ABSL_GUARDED_BY(mutex_) = false;
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
  std::optional<LineWriter> writer_;  // both while a run goes on
  std::optional<internal::RecordFile> records_;
  uint32_t run_ = 0;
  uint64_t dropped_before_ = 0;
  std::thread converter_;

  RequestNames names_{getpid()};  // the converter's
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
