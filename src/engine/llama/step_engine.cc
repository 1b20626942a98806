#include "engine/llama/step_engine.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/mutex.h"
#include "fmt/format.h"
#include "message/queue_full.h"
#include "spdlog/spdlog.h"

namespace portico::llama {
namespace {

// A model that fails this often in a row will not recover.
constexpr int32_t kMostFailures = 3;

}  // namespace

StepEngine::StepEngine(EngineInfo info, std::string description)
    : info_(std::move(info)), description_(std::move(description)) {}

void StepEngine::Start() {
  thread_ = std::thread([this] { Loop(); });
}

Status StepEngine::Accept(Action add) {
  const MutexLock lock(&mutex_);
  PORTICO_RETURN_IF_ERROR(Gone());
  if (in_flight_.load() >= info_.max_running_requests + info_.max_queued_requests) {
    return Error(
        StatusCode::kResourceExhausted,
        fmt::format("the queue is full: {} requests are waiting", info_.max_queued_requests), {},
        kQueueFull);
  }
  in_flight_.fetch_add(1);
  Post(std::move(add));
  return OkStatus();
}

Status StepEngine::BetweenSteps(Action action) {
  const MutexLock lock(&mutex_);
  PORTICO_RETURN_IF_ERROR(Gone());
  Post(std::move(action));
  return OkStatus();
}

Status StepEngine::Gone() const {
  if (!stopping_ && !dead_) return OkStatus();
  return Error(StatusCode::kUnavailable, dead_ ? "the engine failed" : "the engine has stopped");
}

void StepEngine::Abort(StreamId stream, ShardIndex) {
  const MutexLock lock(&mutex_);
  Enqueue({nullptr, stream});
  if (std::erase(awaited_, stream) > 0 && awaited_.empty()) cancel_step_ = true;
}

void StepEngine::Control(EngineControl control, TimePoint deadline, ControlDone done) {
  if (auto* update = std::get_if<UpdateWeightsControl>(&control)) {
    return UpdateWeights(std::move(*update), deadline, std::move(done));
  }
  done(
      std::visit(Overloaded{[this](const FlushCacheControl&) { return FlushCache(); },
                            [this](const PauseControl& pause) { return Pause(pause.mode); },
                            [this](const ContinueControl&) { return Continue(); },
                            [this](const auto& other) { return CannotControl(info_.name, other); }},
                 control));
}

void StepEngine::UpdateWeights(UpdateWeightsControl update, TimePoint, ControlDone done) {
  done(CannotControl(info_.name, update));
}

Status StepEngine::Pause(PauseMode mode) {
  const MutexLock lock(&mutex_);
  PORTICO_RETURN_IF_ERROR(Gone());
  paused_.store(true);
  if (mode != PauseMode::kInPlace) holds_no_cells_ = true;
  Post([this, mode] {
    frozen_ = true;
    Freeze(mode);
  });
  return OkStatus();
}

Status StepEngine::Continue() {
  const MutexLock lock(&mutex_);
  PORTICO_RETURN_IF_ERROR(Gone());
  paused_.store(false);
  holds_no_cells_ = false;
  Post([this] { frozen_ = false; });
  return OkStatus();
}

void StepEngine::Stop() {
  {
    const MutexLock lock(&mutex_);
    stopping_ = true;
    cancel_step_ = true;
  }
  wake_.NotifyOne();
  std::call_once(joined_, [this] { thread_.join(); });
}

EngineLoad StepEngine::LoadWith(int64_t running) const {
  EngineLoad load;
  load.running = running;
  load.waiting = std::max<int64_t>(in_flight_.load() - running, 0);
  load.paused = paused_.load();
  load.healthy = !dead_;
  return load;
}

void StepEngine::Enqueue(Command command) {
  commands_.push_back(std::move(command));
  if (commands_.size() == enough_) wake_.NotifyOne();
}

void StepEngine::PostAtOnce(Action action) {
  const MutexLock lock(&mutex_);
  commands_.push_back({std::move(action), std::nullopt});
  enough_ = 1;
  wake_.NotifyOne();
}

void StepEngine::Loop() {
  pthread_setname_np(pthread_self(), "llama");
  std::vector<Command> commands;
  while (TakeCommands(&commands)) {
    try {
      const bool asked = !commands.empty();
      Apply(&commands);
      if (asked) Deliver();
      if (!frozen_ && RunStep()) Deliver();
    } catch (const std::exception& e) {
      Apply(&commands);  // those that are left
      Die(Error(StatusCode::kInternal, fmt::format("the engine failed: {}", e.what())));
    }
  }
  Apply(&commands);
  EndAll(FinishReason::kAbort, OkStatus());
}

// Waits for work. False: the engine stops; the commands are the last.
bool StepEngine::TakeCommands(std::vector<Command>* commands) {
  const MutexLock lock(&mutex_);
  if (frozen_ || idle()) {
    while (!stopping_ && commands_.empty()) wake_.Wait(&mutex_);
  }
  if (const Gathering more = gathering(); !frozen_ && commands_.size() < more.commands) {
    enough_ = more.commands;
    while (!stopping_ && commands_.size() < enough_ && wake_.WaitUntil(&mutex_, more.until)) {
    }
    enough_ = 1;
  }
  commands->swap(commands_);
  return !stopping_;
}

void StepEngine::Apply(std::vector<Command>* commands) {
  for (Command& command : *commands) {
    if (const auto stream = std::exchange(command.abort, std::nullopt)) EndAborted(*stream);
    if (Action action = std::exchange(command.action, nullptr)) action();
  }
  commands->clear();
}

void StepEngine::LeaveOutAborted() {
  for (const Command& command : commands_) {
    if (command.abort) std::erase(awaited_, *command.abort);
  }
  cancel_step_ = stopping_ || awaited_.empty();
}

void StepEngine::EndStep(const Status& status) {
  if (status.ok()) failures_ = 0;
  const MutexLock lock(&mutex_);
  awaited_.clear();
}

void StepEngine::StepFailed(const Status& error) {
  spdlog::error("llama: {}", MessageOf(error));
  if (++failures_ >= kMostFailures) Die(error);
}

void StepEngine::Die(const Status& error) {
  spdlog::error("llama: the engine failed: {}", MessageOf(error));
  std::vector<Command> commands;
  {
    const MutexLock lock(&mutex_);
    dead_ = true;
    commands.swap(commands_);
  }
  Apply(&commands);
  EndAll(FinishReason::kError, error);
}

void StepEngine::ReleaseEnded() { in_flight_.fetch_sub(std::exchange(ended_, 0)); }

}  // namespace portico::llama
