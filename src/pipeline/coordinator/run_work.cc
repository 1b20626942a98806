// What a stage's thread does for a request: gives the stage's run its parts and ends, one after the other.
#include <algorithm>
#include <utility>

#include "pipeline/coordinator/request_run.h"

namespace portico::pipeline {
namespace {

// A stage's thread goes on with a request for so long before another one has its turn.
constexpr Duration kTurn = std::chrono::milliseconds(1);

}  // namespace

void RequestRun::Work(size_t node) {
  if (StageHost* host = BeginWork(node)) {
    auto run = host->stage().Start(request_, OutputOf(node));
    const MutexLock lock(&mutex_);
    nodes_[node].run = std::move(run);
  }
  TimePoint now = Clock::now();
  const TimePoint until = now + kTurn;
  while (true) {
    Status status;
    if (std::optional<Step> step = NextStep(node, now)) status = step->Take();
    now = Clock::now();
    if (now < until && status.ok() && GoesOn(node, now)) continue;
    if (StageRun* run = RunOf(node)) run->OnPause();
    return EndWork(node, std::move(status));
  }
}

StageRun* RequestRun::RunOf(size_t node) {
  const MutexLock lock(&mutex_);
  return nodes_[node].run.get();
}

bool RequestRun::GoesOn(size_t node, TimePoint now) {
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  at.moved = now;
  if (!HasWork(node)) return false;
  if (std::exchange(at.made_room, false)) {
    for (const size_t source : at.sources) Schedule(source);
  }
  return true;
}

Status RequestRun::Step::Take() {
  if (part) return run->OnPart(*std::move(part), source);
  if (end == End::kOfSource) {
    run->OnSourceEnd(source);
  } else if (end == End::kOfPayloads) {
    run->OnGathered();
  } else {
    run->OnInputEnd();
  }
  return OkStatus();
}

StageHost* RequestRun::BeginWork(size_t node) {
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  if (at.run != nullptr || at.ended || ended_) return nullptr;
  at.began = at.moved = Clock::now();
  events_.Dispatched(node);
  return at.host;
}

std::optional<RequestRun::Step> RequestRun::NextStep(size_t node, TimePoint now) {
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  if (ended_ || at.ended) return std::nullopt;
  Step step;
  step.run = at.run.get();
  if (at.input.empty()) {
    if (at.open_sources + at.open_behind > 0) return std::nullopt;
    at.input_ended = true;
    return step;
  }
  auto [source, part, sent, hop] = std::move(at.input.front());
  at.input.pop_front();
  if (source == kGathered) {
    step.end = Step::End::kOfPayloads;
    return step;
  }
  step.source = NameOf(source);
  step.end = Step::End::kOfSource;
  if (!part) return step;
  const bool full = at.input_bytes >= kQueueBytes;
  at.input_bytes -= PartBytes(*part);
  at.made_room = at.made_room || (full && at.input_bytes < kQueueBytes);
  at.host->parts().Add();
  if (at.in_process.empty()) Took(at, {source, sent, hop}, now);
  if (!at.host->config().process.empty()) at.in_process.push_back({source, sent, hop});
  events_.Took(node, source, *part);
  step.part = std::move(part);
  return step;
}

void RequestRun::Took(Node& node, const Hop& hop, TimePoint now) {
  node.took = now;
  hop.seconds->Observe(std::max(0.0, Seconds(now - hop.sent)));
}

void RequestRun::Worked(size_t node, bool again) {
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  at.moved = Clock::now();
  if (again) {
    at.took = at.moved;  // the process goes on, so what waits for it has not waited in vain
  } else {
    if (!at.in_process.empty()) at.in_process.erase(at.in_process.begin());
    if (!at.in_process.empty()) Took(at, at.in_process.front(), at.moved);
  }
  Schedule(node);
}

void RequestRun::EndWork(size_t node, Status status) {
  std::vector<std::unique_ptr<StageRun>> gone;  // destroyed without the lock
  const MutexLock lock(&mutex_);
  Node& at = nodes_[node];
  at.working = false;
  at.made_room = false;
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
  if (at.began != TimePoint{}) at.host->seconds().Observe(Seconds(Clock::now() - at.began));
  at.host->Leave();
}

}  // namespace portico::pipeline
