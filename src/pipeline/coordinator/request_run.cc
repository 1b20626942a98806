#include "pipeline/coordinator/request_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "pipeline/coordinator/routes.h"
#include "pipeline/parts_in_process.h"

namespace portico::pipeline {
namespace {

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

// Holds its request weakly: a stage may keep it longer.
class RequestRun::Output final : public StageOutput, public PartsInProcess {
 public:
  Output(std::weak_ptr<RequestRun> run, size_t node, bool anew)
      : run_(std::move(run)), node_(node), anew_(anew) {}

  bool Emit(Part part) override {
    const auto run = run_.lock();
    return run != nullptr && run->Emit(node_, std::move(part), {});
  }
  bool EmitTo(Part part, std::string_view target) override {
    const auto run = run_.lock();
    return run != nullptr && run->Emit(node_, std::move(part), target);
  }
  bool EmitAll(std::vector<Part> parts) override {
    const auto run = run_.lock();
    if (run == nullptr) return false;
    const MutexLock lock(&run->mutex_);
    for (Part& part : parts) {
      if (!run->EmitLocked(node_, std::move(part), {})) return false;
    }
    return true;
  }
  void Choose(std::vector<std::string> targets) override {
    if (const auto run = run_.lock()) run->Choose(node_, std::move(targets));
  }
  void EndStreams(std::vector<std::string> targets) override {
    if (const auto run = run_.lock()) run->EndStreams(node_, std::move(targets));
  }
  void WaitFor(std::vector<std::string> sources) override {
    if (const auto run = run_.lock()) run->WaitFor(node_, std::move(sources));
  }
  void End(Status status) override {
    if (const auto run = run_.lock()) run->End(node_, std::move(status), /*died=*/false);
  }
  void Died(Status status) override {
    if (const auto run = run_.lock()) run->End(node_, std::move(status), /*died=*/true);
  }
  bool anew() const override { return anew_; }
  bool aborted() const override {
    const auto run = run_.lock();
    return run == nullptr || run->aborted_.load(std::memory_order_relaxed);
  }
  bool HasRoom() const override {
    const auto run = run_.lock();
    if (run == nullptr) return true;
    const MutexLock lock(&run->mutex_);
    return run->HasRoom(node_);
  }
  void Wake() override {
    const auto run = run_.lock();
    if (run == nullptr) return;
    const MutexLock lock(&run->mutex_);
    run->nodes_[node_].moved = Clock::now();
    run->Schedule(node_);
  }
  void Worked(bool again) override {
    if (const auto run = run_.lock()) run->Worked(node_, again);
  }

 private:
  const std::weak_ptr<RequestRun> run_;
  const size_t node_;
  const bool anew_;
};

std::shared_ptr<StageOutput> RequestRun::OutputOf(size_t node) {
  return std::make_shared<Output>(weak_from_this(), node, anew_);
}

RequestRun::RequestRun(std::shared_ptr<const Request> request, TimePoint start, double timeout_s,
                       std::function<void()> on_ready,
                       std::shared_ptr<std::atomic<size_t>> in_flight, AudioMetrics* audio,
                       bool anew)
    : request_(std::move(request)),
      on_ready_(std::move(on_ready)),
      in_flight_(std::move(in_flight)),
      start_(start),
      timeout_s_(timeout_s),
      anew_(anew),
      deadline_(start_ + (request_->timeout > Duration::zero() ? request_->timeout
                                                               : FromSeconds(timeout_s))),
      audio_metrics_(audio),
      audio_(start_) {
  in_flight_->fetch_add(1);
  events_.Begin(*request_);
}

RequestRun::~RequestRun() {
  for (Node& node : nodes_) {
    node.run.reset();
    if (node.entered) node.host->Leave();
    if (node.admitted) node.host->Dismiss();
  }
  in_flight_->fetch_sub(1);
}

std::shared_ptr<RequestRun> RequestRun::Anew() const {
  return std::make_shared<RequestRun>(request_, start_, timeout_s_, on_ready_, in_flight_,
                                      audio_metrics_, /*anew=*/true);
}

bool RequestRun::GiveAdmission(const StageHost* host) {
  const MutexLock lock(&mutex_);
  const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                 [host](const Node& one) { return one.host == host; });
  return node != nodes_.end() && std::exchange(node->admitted, false);
}

Status RequestRun::Build(const PipelineConfig& config,
                         const std::vector<std::unique_ptr<StageHost>>& hosts, RequestRun* before) {
  std::map<std::string, size_t> at;
  const MutexLock lock(&mutex_);
  const auto add = [&](const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> Status {
    for (const auto& host : hosts) {
      if (host->config().name != name) continue;
      PORTICO_RETURN_IF_ERROR(host->stage().Check(*request_));
      if (before == nullptr || !before->GiveAdmission(host.get())) {
        PORTICO_RETURN_IF_ERROR(host->Admit());
      }
      at.emplace(name, nodes_.size());
      Node node;
      node.host = host.get();
      node.admitted = true;
      node.waits_for_all = !host->config().wait_for.empty();
      nodes_.push_back(std::move(node));
      events_.AddNode(host->label(), !host->config().process.empty(), host->config().terminal);
    }
    return OkStatus();
  };
  PORTICO_RETURN_IF_ERROR(add(config.entry_stage));
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const StageConfig& stage = nodes_[i].host->config();
    for (const std::string& next : RoutesOf(stage, *request_)) {
      if (!at.contains(next)) PORTICO_RETURN_IF_ERROR(add(next));
      Connect(i, at.at(next), /*goes_back=*/false);
    }
    if (stage.terminal) {
      nodes_[i].behind.push_back(
          {.to = kClient, .streams = true, .hop = nodes_[i].host->hop_to_client()});
      ++open_terminals_;
    }
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    for (const std::string& back : FeedbackOf(nodes_[i].host->config(), *request_)) {
      if (at.contains(back)) Connect(i, at.at(back), /*goes_back=*/true);
    }
  }
  if (open_terminals_ > 0) return OkStatus();
  return Error(StatusCode::kUnimplemented,
               fmt::format("this server's pipeline does not do {}", TaskName(request_->task)));
}

void RequestRun::Start() {
  const MutexLock lock(&mutex_);
  Node& entry = nodes_.front();
  events_.Admitted(0);
  const TimePoint sent = Clock::now();
  for (const Part& part : request_->inputs) {
    entry.input.push_back({kClient, part, sent, entry.host->HopFrom(StageHost::kClientName)});
    entry.input_bytes += PartBytes(part);
  }
  TellEnd(0, kClient);
  TellEnd(0, kGathered);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    // Nothing that it waits for is among the request's stages.
    if (nodes_[i].waits_for_all && !nodes_[i].takes_payloads && !nodes_[i].ended) PassOver(i);
  }
  Schedule(0);
}

std::string_view RequestRun::NameOf(size_t node) const {
  return node == kClient ? std::string_view() : nodes_[node].host->config().name;
}

bool RequestRun::HasRoom(size_t node) const {
  const Node& from = nodes_[node];
  for (const Edge& edge : from.behind) {
    if (edge.to == kClient) {
      if (answer_bytes_ >= kQueueBytes) return false;
    } else if (edge.streams && !edge.goes_back && nodes_[edge.to].input_bytes >= kQueueBytes &&
               !Drops(edge.to, node)) {
      return false;
    }
  }
  return true;
}

bool RequestRun::HasWork(size_t node) const {
  const Node& at = nodes_[node];
  if (ended_ || at.ended || at.input_ended || !HasRoom(node)) return false;
  if (at.input.empty() && at.open_sources + at.open_behind > 0) return false;
  return at.run == nullptr || at.run->Accepts();
}

void RequestRun::Schedule(size_t node) {
  Node& at = nodes_[node];
  if (ended_ || at.ended || !HasRoom(node)) return;
  if (at.run != nullptr) at.run->OnRoom();
  if (at.working || !HasWork(node)) return;
  if (!at.entered) {
    if (at.asked) return;
    at.asked = true;
    if (!at.host->Enter(shared_from_this(), node)) return events_.Waits(node);
    at.entered = true;
  }
  at.working = true;
  if (at.host->pool().Submit([self = shared_from_this(), node] { self->Work(node); })) return;
  at.working = false;
  FailSoon(Error(StatusCode::kResourceExhausted, "the pipeline's queue is full"));
}

void RequestRun::FailSoon(Status status) {
  if (failure_.ok()) failure_ = std::move(status);
}

void RequestRun::Entered(size_t node) {
  const MutexLock lock(&mutex_);
  if (ended_ || nodes_[node].ended) return nodes_[node].host->Leave();
  nodes_[node].entered = true;
  Schedule(node);
}

void RequestRun::End(size_t node, Status status, bool died) {
  std::vector<std::unique_ptr<StageRun>> gone;
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  if (ended_ || at.ended) return;
  if (!status.ok()) {
    died_ = died;
    gone = FailLocked(std::move(status), node);
    return;
  }
  at.ended = true;
  EndNode(node);
  events_.Completed(node, at.behind.empty() ? kClient : at.behind.front().to);
  for (const Edge& edge : at.behind) SourceEnded(edge, node, LeavesOut(node, edge));
  // What still waits for it is dropped, and makes room.
  at.input.clear();
  at.held.clear();
  at.input_bytes = 0;
  for (const size_t source : at.sources) Schedule(source);
}

std::vector<std::unique_ptr<StageRun>> RequestRun::FailLocked(Status status, size_t caller) {
  std::vector<std::unique_ptr<StageRun>> gone;
  ended_ = true;
  aborted_ = true;
  failure_ = std::move(status);
  if (!died_) audio_.Report(false, audio_metrics_);
  events_.Ended(caller, false);
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    node.input.clear();
    node.held.clear();
    node.ended = true;
    if (node.run != nullptr) node.run->Abort();
    if (node.working || i == caller) continue;
    if (node.run != nullptr) gone.push_back(std::move(node.run));
    EndNode(i);
  }
  Notify();
  return gone;
}

void RequestRun::Fail(Status status) {
  std::vector<std::unique_ptr<StageRun>> gone;
  const MutexLock lock(&mutex_);
  if (!ended_) gone = FailLocked(std::move(status), kClient);
  ReportDeath();
}

void RequestRun::ReportDeath() {
  if (std::exchange(died_, false)) audio_.Report(false, audio_metrics_);
}

void RequestRun::Notify() {
  if (std::exchange(told_, true)) return;
  on_ready_();
}

std::optional<Call::Taken> RequestRun::Take(size_t max_parts, bool fresh) {
  const MutexLock lock(&mutex_);
  if (died_ && fresh && std::all_of(nodes_.begin(), nodes_.end(), [](const Node& node) {
        return node.began == TimePoint{} || node.host->config().replay;
      })) {
    return std::nullopt;
  }
  ReportDeath();
  told_ = false;
  Call::Taken taken;
  const TimePoint now = Clock::now();
  while (!answer_.empty() && taken.parts.size() < max_parts) {
    Given& next = answer_.front();
    events_.ClientTook(next.source, *next.part);
    next.hop->Observe(Seconds(now - next.sent));
    answer_bytes_ -= PartBytes(*next.part);
    taken.parts.push_back(*std::move(next.part));
    answer_.pop_front();
  }
  if (answer_.empty() && ended_) {
    taken.ended = true;
    taken.status = failure_;
  }
  if (!ended_) {
    for (size_t i = 0; i < nodes_.size(); ++i) Schedule(i);
  }
  return taken;
}

void RequestRun::CheckTime(TimePoint now) {
  std::vector<std::unique_ptr<StageRun>> gone;
  const MutexLock lock(&mutex_);
  if (ended_) return;
  if (!failure_.ok()) {
    gone = FailLocked(failure_, kClient);
    return;
  }
  // A client that takes its time to listen is no fault of a stage.
  const bool listens = answer_bytes_ < kQueueBytes;
  if (!listens) {
    deadline_ += std::chrono::milliseconds(20);
    audio_.Paused(std::chrono::milliseconds(20));
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& node = nodes_[i];
    if (node.ended) continue;
    if (Status late = CheckHop(i, now); !late.ok()) {
      gone = FailLocked(std::move(late), kClient);
      return;
    }
    if (node.run == nullptr) continue;
    const StageConfig& config = node.host->config();
    const bool works = node.working || node.input_ended || node.run->busy();
    if (!HasRoom(i) || (node.input.empty() && !works) || node.run->loading()) {
      node.moved = now;  // it waits for others, or for a file
    }
    if (config.timeout_s > 0 && listens && now - node.began > FromSeconds(config.timeout_s)) {
      gone = FailLocked(
          Error(StatusCode::kDeadlineExceeded,
                fmt::format("stage `{}` took longer than {:g} s", config.name, config.timeout_s)),
          kClient);
      return;
    }
    if (config.stall_timeout_s > 0 && now - node.moved > FromSeconds(config.stall_timeout_s)) {
      gone = FailLocked(
          Error(StatusCode::kUnavailable, fmt::format("stage `{}` has made no progress for {:g} s",
                                                      config.name, config.stall_timeout_s)),
          kClient);
      return;
    }
  }
  if (now < deadline_) return;
  const auto at =
      std::find_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return !node.ended; });
  if (at == nodes_.end()) return;
  gone = FailLocked(
      Error(StatusCode::kDeadlineExceeded,
            fmt::format("the request took longer than {:.0f} s; it {} stage `{}`",
                        Seconds(now - start_), at->run == nullptr ? "waited for" : "was in",
                        at->host->config().name)),
      kClient);
}

Status RequestRun::CheckHop(size_t node, TimePoint now) {
  Node& at = nodes_[node];
  const double most = at.host->config().hop_timeout_s;
  if (most <= 0) return OkStatus();
  // Those behind it, or a file, hold it up.
  if (!HasRoom(node) || (at.run != nullptr && at.run->loading())) at.took = now;
  const bool in_process = at.in_process.size() > 1;
  if (!in_process && (at.input.empty() || !at.input.front().part)) return OkStatus();
  const size_t source = in_process ? at.in_process[1].source : at.input.front().source;
  const TimePoint sent = in_process ? at.in_process[1].sent : at.input.front().sent;
  if (now - std::max(at.took, sent) <= FromSeconds(most)) return OkStatus();
  const std::string from =
      source == kClient ? std::string("the client") : fmt::format("stage `{}`", NameOf(source));
  return Error(StatusCode::kDeadlineExceeded,
               fmt::format("what {} has sent waits for stage `{}` longer than {:g} s", from,
                           NameOf(node), most));
}

}  // namespace portico::pipeline
