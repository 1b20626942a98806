// One request while it runs: its runs in the stages, and the queues between them.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/cpu_pool.h"
#include "base/metrics.h"
#include "base/mutex.h"
#include "pipeline/config/config.h"
#include "pipeline/coordinator/audio_times.h"
#include "pipeline/coordinator/pipeline.h"
#include "pipeline/coordinator/run_events.h"
#include "pipeline/request.h"
#include "pipeline/stage.h"

namespace portico::pipeline {

// A stage with what its requests share. Thread safe.
class StageHost {
 public:
  StageHost(const StageConfig& config, std::unique_ptr<Stage> stage, CpuPool* shared,
            Registry* registry);

  const StageConfig& config() const { return config_; }
  Stage& stage() { return *stage_; }
  CpuPool& pool() { return own_ ? *own_ : *shared_; }

  // A request that will come here is admitted or refused at its start.
  Status Admit();
  void Dismiss();
  // True: the run may begin. Else it is told later, from another run's thread.
  bool Enter(std::shared_ptr<RequestRun> run, size_t node);
  void Leave();

  // Joins its own threads; before the requests that they work on go away.
  void StopThreads() { own_.reset(); }

  events::Label label() const { return label_; }
  Counter& parts() { return parts_; }
  Histogram& seconds() { return seconds_; }

  // Before the first request: parts come from this stage, or from the client.
  void AddHop(std::string_view source, Registry* registry);
  // From the sending of a part by `source` to its taking here.
  Histogram* HopFrom(std::string_view source) const;
  // From its sending here to its taking by the client; null: not a terminal.
  Histogram* hop_to_client() const { return hop_to_client_; }

  // The client as the source or the target of a hop; no stage has such a name.
  static constexpr std::string_view kClientName = "(client)";

 private:
  const StageConfig& config_;
  const events::Label label_;
  std::unique_ptr<Stage> stage_;
  CpuPool* shared_;
  std::unique_ptr<CpuPool> own_;
  Counter& parts_;
  Histogram& seconds_;
  Gauge& admitted_gauge_;
  std::vector<std::pair<std::string, Histogram*>> hops_;  // by source
  Histogram* hop_to_client_ = nullptr;

  Mutex mutex_;
  int admitted_ ABSL_GUARDED_BY(mutex_) = 0;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::pair<std::weak_ptr<RequestRun>, size_t>> waiting_ ABSL_GUARDED_BY(mutex_);
};

class RequestRun : public std::enable_shared_from_this<RequestRun> {
 public:
  // The queue in front of a stage or of the client has room up to this; what one step of a stage
  // makes may exceed it.
  static constexpr size_t kQueueBytes = 256 << 10;

  // `in_flight` is one less when this is gone. `audio` outlives this. `anew`: of Anew().
  RequestRun(std::shared_ptr<const Request> request, TimePoint start, double timeout_s,
             std::function<void()> on_ready, std::shared_ptr<std::atomic<size_t>> in_flight,
             AudioMetrics* audio, bool anew = false);
  ~RequestRun();
  // The same request, from its start: for one that Take() tells has died.
  std::shared_ptr<RequestRun> Anew() const;

  // Makes the nodes for the hosts that this request reaches from the entry. They admit it, but for those
  // that have admitted `before`, which loses its admission there; null: there is none.
  Status Build(const PipelineConfig& config, const std::vector<std::unique_ptr<StageHost>>& hosts,
               RequestRun* before);
  void Start();

  // Nothing, where it has failed because a stage's process ended, and may begin anew: the client has
  // taken nothing, as `fresh` says, and all stages that have begun allow it.
  std::optional<Call::Taken> Take(size_t max_parts, bool fresh);
  // Ends everything; the client is told `status`.
  void Fail(Status status);
  // Looks at deadlines.
  void CheckTime(TimePoint now);
  // Takes no lock: hosts ask with their own held.
  bool over() const { return ended_; }
  // A host has a place for this node.
  void Entered(size_t node);

 private:
  class Output;
  // From a node to another, or to the client.
  struct Edge {
    size_t to = 0;
    bool streams = false;  // parts go on as they are made
    bool payload = false;  // the other waits for all of it; else it is a stream beside that
    bool goes_back = false;
    Histogram* hop = nullptr;
  };
  // What a run is given. No part: its source has ended; of kGathered, all that is waited for.
  struct Given {
    size_t source = 0;
    std::optional<Part> part;
    TimePoint sent{};          // of a part: could be taken from then on
    Histogram* hop = nullptr;  // of a part
  };
  // The way of a part to a stage.
  struct Hop {
    size_t source = 0;
    TimePoint sent{};
    Histogram* seconds = nullptr;
  };
  struct Node {
    StageHost* host = nullptr;
    bool admitted = false;  // there, until it is dismissed
    std::unique_ptr<StageRun> run;
    std::deque<Given> input;
    std::deque<Given> held;  // parts
    // Of parts that the stage's process was given and has not worked on; it works on the first.
    std::vector<Hop> in_process;
    std::vector<size_t> held_ends;  // sources of `held` that have ended
    size_t input_bytes = 0;
    size_t held_bytes = 0;
    std::vector<Edge> behind;
    // Of those that it does not stream to, the names of those that get its parts; nothing: all.
    std::optional<std::vector<std::string>> chosen;
    // Of those that it streams to, the names of those that are told its end; nothing: all.
    std::optional<std::vector<std::string>> told;
    // Of those in its `wait_for`, the names of those that it waits for; nothing: all.
    std::optional<std::vector<std::string>> awaited;
    std::vector<size_t> sources;  // also those behind it
    size_t open_sources = 0;      // without those behind it
    size_t open_behind = 0;       // those behind it
    size_t open_payloads = 0;
    size_t chosen_sources = 0;   // of those before it, without those that have chosen others
    size_t chosen_payloads = 0;  // of those with a payload
    bool takes_payloads = false;
    bool tells_ends = false;  // to its run
    bool gathered = false;    // no payload is open, or the last one was
    bool entered = false;     // has its place in the host
    bool asked = false;       // has asked for one
    bool working = false;     // on a thread now
    bool made_room = false;   // its queue was full, and its sources were not told since
    bool input_ended = false;
    bool ended = false;
    bool waits_for_all = false;  // fan-in
    TimePoint began{};
    TimePoint moved{};
    TimePoint took{};  // a part, or could not for those behind it
  };
  static constexpr size_t kClient = SIZE_MAX;
  static constexpr size_t kGathered = SIZE_MAX - 1;
  // What may wait for a source to end.
  static constexpr size_t kHeldBytes = 64 << 20;

  // `target`: the name of one of the node's `behind`, or "", all of them.
  bool Emit(size_t node, Part part, std::string_view target);
  bool EmitLocked(size_t node, Part part, std::string_view target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Choose(size_t node, std::vector<std::string> targets);
  void EndStreams(size_t node, std::vector<std::string> targets);
  void WaitFor(size_t node, std::vector<std::string> sources);
  void End(size_t node, Status status, bool died);
  void Connect(size_t from, size_t to, bool goes_back) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Arrive(const Edge& edge, size_t source, Part part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool PassesNow(const Edge& edge) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nobody there waits for the source.
  bool Drops(size_t node, size_t source) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `left_out`: by the source's choice; what is held of it is dropped.
  void SourceEnded(const Edge& edge, size_t source, bool left_out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves what is held of the source to the input.
  void Release(size_t node, size_t source) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The last payload has ended: what waits for that goes on.
  void Gather(size_t node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellEnd(size_t node, size_t source) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // No source has chosen the node: its run, if it was streamed to, is aborted, and those behind it
  // get no more from it.
  void PassOver(size_t node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The node's choice leaves out the edge.
  bool LeavesOut(size_t node, const Edge& edge) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The watcher ends the request: its runs cannot be destroyed here, where one may be on the stack.
  void FailSoon(Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Schedule(size_t node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasRoom(size_t node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The node's run is to be called again.
  bool HasWork(size_t node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends everything but the run of `caller`; the runs to destroy without the lock.
  [[nodiscard]] std::vector<std::unique_ptr<StageRun>> FailLocked(Status status, size_t caller)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndNode(size_t node) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Why the part that is next in front of the node has waited too long; or OK.
  Status CheckHop(size_t node, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of a request that has died, once it is known that it does not begin anew.
  void ReportDeath() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Notify() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string_view NameOf(size_t node) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // On the stage's threads, one at a time of a node: gives its run the next parts, or tells it that none comes.
  void Work(size_t node);
  // True: there is a next one now.
  bool GoesOn(size_t node, TimePoint now);
  // The stage takes the part from its source.
  void Took(Node& node, const Hop& hop, TimePoint now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // PartsInProcess::Worked() of the node's run.
  void Worked(size_t node, bool again);
  // Null: it has none yet. Stays while the node works.
  StageRun* RunOf(size_t node);
  struct Step {
    StageRun* run = nullptr;
    std::string_view source;
    std::optional<Part> part;  // nothing: an end
    enum class End { kOfInput, kOfSource, kOfPayloads } end = End::kOfInput;

    Status Take();
  };
  std::shared_ptr<StageOutput> OutputOf(size_t node);
  // The host to start the node's run on; null: it has one, or needs none any more.
  StageHost* BeginWork(size_t node);
  // False: it has none there.
  bool GiveAdmission(const StageHost* host);
  // Nothing: nobody waits for the run any more, or there is nothing to do after all.
  std::optional<Step> NextStep(size_t node, TimePoint now);
  void EndWork(size_t node, Status status);
  const std::shared_ptr<const Request> request_;
  const std::function<void()> on_ready_;
  const std::shared_ptr<std::atomic<size_t>> in_flight_;
  const TimePoint start_;
  const double timeout_s_;
  const bool anew_;
  std::atomic<bool> aborted_{false};
  std::atomic<bool> ended_{false};  // changes under mutex_ only

  mutable Mutex mutex_;
  RunEvents events_ ABSL_GUARDED_BY(mutex_);
  TimePoint deadline_ ABSL_GUARDED_BY(mutex_);
  AudioMetrics* const audio_metrics_;
  AudioTimes audio_ ABSL_GUARDED_BY(mutex_);
  // In order from the entry. Which there are, and how they are connected, is fixed after Build().
  std::vector<Node> nodes_ ABSL_GUARDED_BY(mutex_);
  std::deque<Given> answer_ ABSL_GUARDED_BY(mutex_);
  size_t answer_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t open_terminals_ ABSL_GUARDED_BY(mutex_) = 0;
  Status failure_ ABSL_GUARDED_BY(mutex_);
  bool died_ ABSL_GUARDED_BY(mutex_) = false;  // failed with a stage's process, and may begin anew
  bool told_ ABSL_GUARDED_BY(mutex_) = false;  // on_ready_ since the last Take()
};

}  // namespace portico::pipeline
