#include "pipeline/request_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/routes.h"

namespace portico::pipeline {
namespace {

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

// Holds its request weakly: a stage may keep it longer.
class RequestRun::Output final : public StageOutput {
 public:
  Output(std::weak_ptr<RequestRun> run, size_t node) : run_(std::move(run)), node_(node) {}

  bool Emit(Part part) override {
    const auto run = run_.lock();
    return run != nullptr && run->Emit(node_, std::move(part), {});
  }
  bool EmitTo(Part part, std::string_view target) override {
    const auto run = run_.lock();
    return run != nullptr && run->Emit(node_, std::move(part), target);
  }
  void Choose(std::vector<std::string> targets) override {
    if (const auto run = run_.lock()) run->Choose(node_, std::move(targets));
  }
  void End(Status status) override {
    if (const auto run = run_.lock()) run->End(node_, std::move(status));
  }
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
    run->Schedule(node_);
  }

 private:
  const std::weak_ptr<RequestRun> run_;
  const size_t node_;
};

RequestRun::RequestRun(Request request, double timeout_s, std::function<void()> on_ready,
                       std::shared_ptr<std::atomic<size_t>> in_flight, AudioMetrics* audio)
    : request_(std::make_shared<const Request>(std::move(request))),
      on_ready_(std::move(on_ready)),
      in_flight_(std::move(in_flight)),
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
    if (node.host != nullptr) node.host->Dismiss();
  }
  in_flight_->fetch_sub(1);
}

Status RequestRun::Build(const PipelineConfig& config,
                         const std::vector<std::unique_ptr<StageHost>>& hosts) {
  std::map<std::string, size_t> at;
  const MutexLock lock(&mutex_);
  const auto add = [&](const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> Status {
    for (const auto& host : hosts) {
      if (host->config().name != name) continue;
      PORTICO_RETURN_IF_ERROR(host->stage().Check(*request_));
      PORTICO_RETURN_IF_ERROR(host->Admit());
      at.emplace(name, nodes_.size());
      Node node;
      node.host = host.get();
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
      const size_t behind = at.at(next);
      nodes_[i].behind.push_back(behind);
      nodes_[i].streams.push_back(std::find(stage.stream_to.begin(), stage.stream_to.end(), next) !=
                                  stage.stream_to.end());
      nodes_[behind].sources.push_back(i);
      ++nodes_[behind].open_sources;
    }
    if (stage.terminal) {
      nodes_[i].behind.push_back(kClient);
      nodes_[i].streams.push_back(true);
      ++open_terminals_;
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
  for (const Part& part : request_->inputs) {
    entry.input.emplace_back(kClient, part);
    entry.input_bytes += PartBytes(part);
  }
  Schedule(0);
}

std::string_view RequestRun::NameOf(size_t node) const {
  return node == kClient ? std::string_view() : nodes_[node].host->config().name;
}

bool RequestRun::Emit(size_t node, Part part, std::string_view target) {
  const MutexLock lock(&mutex_);
  Node& from = nodes_[node];
  if (ended_ || from.ended) return false;
  from.moved = Clock::now();
  for (size_t i = 0; i < from.behind.size(); ++i) {
    if (!target.empty() && NameOf(from.behind[i]) != target) continue;
    events_.Sent(node, i, from.behind[i], from.streams[i], part);
    const bool last = !target.empty() || i + 1 == from.behind.size();
    const Status arrived =
        Arrive(from.behind[i], node, last ? std::move(part) : part, from.streams[i]);
    if (arrived.ok()) continue;
    // Its runs are destroyed later: this one is on the stack.
    failure_ = arrived;
    deadline_ = start_;
    return false;
  }
  return true;
}

void RequestRun::Choose(size_t node, std::vector<std::string> targets) {
  const MutexLock lock(&mutex_);
  if (!ended_ && !nodes_[node].ended) nodes_[node].chosen = std::move(targets);
}

bool RequestRun::LeavesOut(size_t node, size_t edge) const {
  const Node& from = nodes_[node];
  return from.chosen && !from.streams[edge] &&
         std::find(from.chosen->begin(), from.chosen->end(), NameOf(from.behind[edge])) ==
             from.chosen->end();
}

Status RequestRun::Arrive(size_t node, size_t source, Part part, bool streams) {
  const size_t bytes = PartBytes(part);
  if (node == kClient) {
    if (const auto* sound = std::get_if<EncodedPart>(&part)) {
      audio_.Came(nodes_[source].moved, sound->seconds);
    }
    answer_bytes_ += bytes;
    answer_.emplace_back(source, std::move(part));
    Notify();
    return OkStatus();
  }
  Node& to = nodes_[node];
  if (streams && !to.waits_for_all) {
    to.input_bytes += bytes;
    to.input.emplace_back(source, std::move(part));
    Schedule(node);
    return OkStatus();
  }
  to.held_bytes += bytes;
  if (to.held_bytes > kHeldBytes) {
    return Error(StatusCode::kResourceExhausted,
                 fmt::format("more than {} MB wait for stage `{}`; let the stages before it "
                             "stream_to it",
                             kHeldBytes >> 20, NameOf(node)));
  }
  to.held.emplace_back(source, std::move(part));
  return OkStatus();
}

void RequestRun::PassOver(size_t node) {
  nodes_[node].ended = true;
  for (const size_t behind : nodes_[node].behind) SourceEnded(behind, node, /*passed_over=*/true);
}

void RequestRun::SourceEnded(size_t node, size_t source, bool passed_over) {
  if (node == kClient) {
    if (--open_terminals_ > 0) return;
    ended_ = true;
    audio_.Report(true, audio_metrics_);
    events_.Ended(source, true);
    Notify();
    return;
  }
  Node& to = nodes_[node];
  --to.open_sources;
  if (passed_over) {
    std::erase_if(to.held, [source](const auto& held) { return held.first == source; });
    if (++to.passed_over == to.sources.size()) return PassOver(node);
  }
  const auto release = [&to](size_t from) {
    for (auto& [sender, part] : to.held) {
      if (sender != from) continue;
      to.input_bytes += PartBytes(part);
      to.input.emplace_back(sender, std::move(part));
    }
    std::erase_if(to.held, [from](const auto& held) { return held.first == from; });
  };
  if (!to.waits_for_all) {
    release(source);
  } else if (to.open_sources == 0) {
    events_.Gathered(node);
    for (const std::string& name : to.host->config().wait_for) {
      for (const size_t from : to.sources) {
        if (NameOf(from) == name) release(from);
      }
    }
  }
  Schedule(node);
}

bool RequestRun::HasRoom(size_t node) const {
  const Node& from = nodes_[node];
  for (size_t i = 0; i < from.behind.size(); ++i) {
    if (from.behind[i] == kClient) {
      if (answer_bytes_ >= kQueueBytes) return false;
    } else if (nodes_[from.behind[i]].input_bytes >= kQueueBytes && from.streams[i]) {
      return false;
    }
  }
  return true;
}

void RequestRun::Schedule(size_t node) {
  Node& at = nodes_[node];
  if (ended_ || at.ended || !HasRoom(node)) return;
  if (at.run != nullptr) at.run->OnRoom();
  if (at.working || at.input_ended) return;
  if (at.input.empty() && at.open_sources > 0) return;
  if (at.run != nullptr && !at.run->Accepts()) return;
  if (!at.entered) {
    if (at.asked) return;
    at.asked = true;
    if (!at.host->Enter(shared_from_this(), node)) return events_.Waits(node);
    at.entered = true;
  }
  at.working = true;
  CpuPool::Task task = [self = shared_from_this(), node] { self->Work(node); };
  if (at.host->pool().Submit(std::move(task))) return;
  at.working = false;
  failure_ = Error(StatusCode::kResourceExhausted, "the pipeline's queue is full");
  deadline_ = start_;  // the watcher ends it
}

void RequestRun::Entered(size_t node) {
  const MutexLock lock(&mutex_);
  if (ended_ || nodes_[node].ended) return nodes_[node].host->Leave();
  nodes_[node].entered = true;
  Schedule(node);
}

void RequestRun::Work(size_t node) {
  if (StageHost* host = BeginWork(node)) {
    auto run = host->stage().Start(request_, std::make_shared<Output>(weak_from_this(), node));
    const MutexLock lock(&mutex_);
    nodes_[node].run = std::move(run);
  }
  Status status;
  if (std::optional<Step> step = NextStep(node)) {
    if (step->part) {
      status = step->run->OnPart(*std::move(step->part), step->source);
    } else {
      step->run->OnInputEnd();
    }
  }
  EndWork(node, std::move(status));
}

StageHost* RequestRun::BeginWork(size_t node) {
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  if (at.run != nullptr || ended_) return nullptr;
  at.began = at.moved = Clock::now();
  events_.Dispatched(node);
  return at.host;
}

std::optional<RequestRun::Step> RequestRun::NextStep(size_t node) {
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  if (ended_ || at.ended) return std::nullopt;
  Step step;
  step.run = at.run.get();
  if (at.input.empty()) {
    at.input_ended = true;
    return step;
  }
  auto [source, part] = std::move(at.input.front());
  at.input.pop_front();
  at.input_bytes -= PartBytes(part);
  at.host->parts().Add();
  events_.Took(node, source, part);
  step.source = NameOf(source);
  step.part = std::move(part);
  return step;
}

void RequestRun::EndWork(size_t node, Status status) {
  std::vector<std::unique_ptr<StageRun>> gone;  // destroyed without the lock
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  at.working = false;
  at.moved = Clock::now();
  if (!status.ok() && !ended_) gone = FailLocked(std::move(status), kClient);
  if (ended_ || at.ended) {
    if (at.run != nullptr) gone.push_back(std::move(at.run));
    EndNode(node);
  } else {
    Schedule(node);
    for (const size_t source : at.sources) Schedule(source);
  }
}

// Gives the node's place back.
void RequestRun::EndNode(size_t node) {
  Node& at = nodes_[node];
  if (!at.entered || at.working) return;
  at.entered = false;
  at.host->seconds().Observe(Seconds(Clock::now() - at.began));
  at.host->Leave();
}

void RequestRun::End(size_t node, Status status) {
  std::vector<std::unique_ptr<StageRun>> gone;
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  if (ended_ || at.ended) return;
  if (!status.ok()) {
    gone = FailLocked(std::move(status), node);
    return;
  }
  at.ended = true;
  EndNode(node);
  events_.Completed(node, at.behind.empty() ? kClient : at.behind.front());
  for (size_t i = 0; i < at.behind.size(); ++i) {
    SourceEnded(at.behind[i], node, LeavesOut(node, i));
  }
  // What still waits for it is dropped, and makes room.
  at.input.clear();
  at.input_bytes = 0;
  for (const size_t source : at.sources) Schedule(source);
}

std::vector<std::unique_ptr<StageRun>> RequestRun::FailLocked(Status status, size_t caller) {
  std::vector<std::unique_ptr<StageRun>> gone;
  ended_ = true;
  aborted_ = true;
  failure_ = std::move(status);
  audio_.Report(false, audio_metrics_);
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
}

void RequestRun::Notify() {
  if (std::exchange(told_, true)) return;
  on_ready_();
}

Call::Taken RequestRun::Take(size_t max_parts) {
  const MutexLock lock(&mutex_);
  told_ = false;
  Call::Taken taken;
  while (!answer_.empty() && taken.parts.size() < max_parts) {
    auto& [source, part] = answer_.front();
    events_.ClientTook(source, part);
    answer_bytes_ -= PartBytes(part);
    taken.parts.push_back(std::move(part));
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
    if (node.ended || node.run == nullptr) continue;
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
  std::string_view where;
  for (size_t i = 0; i < nodes_.size() && where.empty(); ++i) {
    if (!nodes_[i].ended) where = NameOf(i);
  }
  gone = FailLocked(Error(StatusCode::kDeadlineExceeded,
                          fmt::format("the request took longer than {:.0f} s; it was in stage "
                                      "`{}`",
                                      Seconds(now - start_), where)),
                    kClient);
}

}  // namespace portico::pipeline
