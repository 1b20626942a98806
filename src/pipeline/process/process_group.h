// Stages that run in processes of their own: `replicas` equal processes, each with all stages of
// the group, started again when they end.
//
// A run of a request lives in one process. What it is given is kept until the stage has shown
// something, so that a run whose process ends before that begins anew in another one, once; the
// others end with UNAVAILABLE, which names the stage, or their request begins anew as a whole
// (StageOutput::Died()), whose runs do not begin anew. A process that ends is started again at once,
// then after growing pauses. One that answers no ping within half of the stall timeout is ended.
//
// Credits: a process is given kMaxOutstanding parts of a run beyond those that it has worked on, or
// kFewOutstanding large ones, and may send kEmitBytes that the stages behind have not taken.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/events/recorder.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "base/status.h"
#include "pipeline/config/config.h"
#include "pipeline/process/channel.h"
#include "pipeline/process/message.h"
#include "pipeline/stage.h"

namespace portico::pipeline {

// What a stage process says of a stage when it is ready.
struct StageFacts {
  int max_running = 0;  // in one process; 0: as many as there are
  std::vector<std::string> voices;
  std::vector<std::string> speech_fields;  // of kSpeechFields, those that it takes
};

struct ProcessGroupOptions {
  std::string name;
  std::vector<const StageConfig*> stages;  // outlive the group
  int replicas = 1;
  StageOpener open;
  std::string init;    // what a process is told first: JSON of kInit
  double stall_s = 0;  // 0: kQuiet
  bool restart = true;
  bool remote = false;  // on another host: frames have a bound, and profiles do not go there
};

// Thread safe.
class ProcessGroup {
 public:
  static constexpr size_t kMaxOutstanding = 32;
  static constexpr size_t kFewOutstanding = 4;
  static constexpr size_t kEmitBytes = 512 << 10;
  static constexpr size_t kMaxKept = 64 << 20;  // of one run, for its second beginning
  static constexpr Duration kQuiet = std::chrono::seconds(30);
  static constexpr Duration kStartPatience = std::chrono::seconds(120);

  // Waits until every process is ready. UNAVAILABLE or INVALID_ARGUMENT: what one of them says.
  static StatusOr<std::unique_ptr<ProcessGroup>> Start(ProcessGroupOptions options,
                                                       Registry* registry);
  ~ProcessGroup();  // Stop()
  // Ends the processes; runs that are left end. No run is made any more.
  void Stop();
  // Begins that, and does not wait: several groups end at the same time.
  void BeginStop();

  // Of what the processes said when they became ready.
  StageFacts Facts(std::string_view stage) const;
  // UNAVAILABLE: no process is there, and none will be within a second.
  Status Available(std::string_view stage) const;
  // What is wrong now, a line each.
  std::vector<std::string> Problems() const;

  std::unique_ptr<StageRun> NewRun(const StageConfig& stage,
                                   const std::shared_ptr<const Request>& request,
                                   std::shared_ptr<StageOutput> output);

 private:
  class Run;
  struct Call;
  struct Process;
  using CallPtr = std::shared_ptr<Call>;
  enum class State { kDown, kOpening, kStarting, kUp };

  ProcessGroup(ProcessGroupOptions options, Registry* registry);

  // What the recorder says: its runs go on in the processes.
  void OnProfile(const events::RunOptions* runs);
  // How long a process may take to end: it writes the lines of a profile that has just ended.
  Duration EndPatience() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Until each process is ready or has ended. Why one is not ready.
  Status WaitForStart();
  void Supervise(Process& process);
  // From the spawning to the end; says why it ended.
  std::string Serve(Process& process);
  Status ReadAll(Process& process);
  Status HandleAll(Process& process, std::vector<Message> messages);
  Status Handle(Process& process, Message message);
  // The run's call; nobody's: null.
  CallPtr Heard(Process& process, uint64_t run);
  Status OnReady(Process& process, const Message& message);
  // What a run begins with. Of a call that nobody else knows yet.
  static Status AddStart(Call& call, const Request& request, std::string_view json,
                         std::span<const std::string> taken);
  // `target`: of a part for one stage alone; else empty.
  void OnEmit(const CallPtr& call, std::vector<Part> parts, std::string_view target);
  // What is due: pings, silence, aborts without an answer. Why the process must end, or "".
  std::string Tick(Process& process, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Bury(Process& process, std::string_view why);

  static constexpr size_t kMaxPacked = 32 << 10;
  // A process that answers no ping for so long is a problem.
  static constexpr Duration kUnanswered = std::chrono::seconds(5);
  // Now, behind what is packed.
  void Send(Process& process, const Datagram& datagram) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // With the next Flush().
  void SendLater(Process& process, const Datagram& datagram) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Flush(Process& process) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FlushAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Wake(Process& process) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // These send with the next Flush().
  void Pump(Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Put(Process& process, const CallPtr& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void PlaceWaiting() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Process* FindPlace(const Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status AvailableLocked(std::string_view stage) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HopeLeft() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveRoom(Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // What was sent: it will not begin anew.
  void Forget(Call& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AbortLocked(const CallPtr& call) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ProcessGroupOptions options_;
  const Duration silence_;
  const Duration period_;  // between two Tick()s, at most, while this process is not stopped
  Datagram init_;
  Counter& restarts_;
  Counter& replays_;
  Counter& garbage_;
  Gauge& up_;

  uint64_t listener_ = 0;  // to the recorder; 0: none

  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Datagram> profile_ ABSL_GUARDED_BY(mutex_);    // of the run that goes on
  std::optional<TimePoint> profiled_ ABSL_GUARDED_BY(mutex_);  // the last start or stop
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t last_run_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<CallPtr> waiting_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, StageFacts, std::less<>> facts_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Process>> processes_;  // fixed after Start()
};

}  // namespace portico::pipeline
