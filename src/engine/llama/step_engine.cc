#include "engine/llama/step_engine.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "fmt/format.h"
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
  std::lock_guard lock(mutex_);
  if (stopping_ || dead_) return Gone();
  if (in_flight_.load() >= info_.max_running_requests + info_.max_queued_requests) {
    return Error(
        StatusCode::kResourceExhausted,
        fmt::format("the queue is full: {} requests are waiting", info_.max_queued_requests));
  }
  in_flight_.fetch_add(1);
  Post(std::move(add));
  return OkStatus();
}

Status StepEngine::BetweenSteps(Action action) {
  std::lock_guard lock(mutex_);
  if (stopping_ || dead_) return Gone();
  Post(std::move(action));
  return OkStatus();
}

Status StepEngine::Gone() const {
  return Error(StatusCode::kUnavailable, dead_ ? "the engine has died" : "the engine has stopped");
}

void StepEngine::Abort(StreamId stream) {
  std::lock_guard lock(mutex_);
  Enqueue({nullptr, stream});
  if (std::erase(awaited_, stream) > 0 && awaited_.empty()) cancel_step_ = true;
}

Status StepEngine::Pause(PauseMode mode) {
  std::lock_guard lock(mutex_);
  if (stopping_ || dead_) return Gone();
  paused_.store(true);
  if (mode != PauseMode::kInPlace) holds_no_cells_ = true;
  Post([this, mode] {
    frozen_ = true;
    Freeze(mode);
  });
  return OkStatus();
}

Status StepEngine::Continue() {
  std::lock_guard lock(mutex_);
  if (stopping_ || dead_) return Gone();
  paused_.store(false);
  holds_no_cells_ = false;
  Post([this] { frozen_ = false; });
  return OkStatus();
}

void StepEngine::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    cancel_step_ = true;
  }
  wake_.notify_one();
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
  if (commands_.size() == enough_) wake_.notify_one();
}

void StepEngine::PostAtOnce(Action action) {
  std::lock_guard lock(mutex_);
  commands_.push_back({std::move(action), std::nullopt});
  enough_ = 1;
  wake_.notify_one();
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
  std::unique_lock lock(mutex_);
  if (frozen_ || idle()) {
    wake_.wait(lock, [this] { return stopping_ || !commands_.empty(); });
  }
  if (const Gathering more = gathering(); !frozen_ && commands_.size() < more.commands) {
    enough_ = more.commands;
    wake_.wait_until(lock, more.until, [this] { return stopping_ || commands_.size() >= enough_; });
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

// With mutex_ held.
void StepEngine::LeaveOutAborted() {
  for (const Command& command : commands_) {
    if (command.abort) std::erase(awaited_, *command.abort);
  }
  cancel_step_ = stopping_ || awaited_.empty();
}

void StepEngine::EndStep(const Status& status) {
  if (status.ok()) failures_ = 0;
  std::lock_guard lock(mutex_);
  awaited_.clear();
}

void StepEngine::StepFailed(const Status& error) {
  spdlog::error("llama: {}", MessageOf(error));
  if (++failures_ >= kMostFailures) Die(error);
}

void StepEngine::Die(const Status& error) {
  spdlog::error("llama: the engine gives up: {}", MessageOf(error));
  std::vector<Command> commands;
  {
    std::lock_guard lock(mutex_);
    dead_ = true;
    commands.swap(commands_);
  }
  Apply(&commands);
  EndAll(FinishReason::kError, error);
}

void StepEngine::ReleaseEnded() { in_flight_.fetch_sub(std::exchange(ended_, 0)); }

}  // namespace portico::llama
