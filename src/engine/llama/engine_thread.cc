#include "engine/llama/engine_thread.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <random>
#include <utility>

#include "fmt/format.h"
#include "spdlog/spdlog.h"

namespace portico::llama {
namespace {

// A model that fails this often in a row will not recover.
constexpr int32_t kMostFailures = 3;

}  // namespace

EngineThread::EngineThread(std::unique_ptr<LlamaModel> model, std::unique_ptr<ModelRunner> runner,
                           EngineInfo info, const RunnerOptions& running,
                           const SchedulerOptions& scheduling, int32_t kept_sequences,
                           std::string description)
    : info_(std::move(info)),
      description_(std::move(description)),
      model_(std::move(model)),
      runner_(std::move(runner)),
      runner_options_(running),
      next_seed_(uint64_t{std::random_device{}()} << 32),
      cache_(runner_.get(), info_.max_total_tokens, info_.max_running_requests, kept_sequences),
      scheduler_(scheduling, &cache_),
      thread_([this] { Loop(); }) {}

Status EngineThread::Submit(GenerateRequest request, TokenSink* sink) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt->size());
  if (prompt_tokens >= info_.max_total_tokens) {
    return InvalidArgument("prompt", fmt::format("the prompt has {} tokens, the KV cache only {}",
                                                 prompt_tokens, info_.max_total_tokens));
  }
  auto stream = std::make_unique<Stream>(std::move(request), sink, info_.eos_token_ids,
                                         next_seed_.fetch_add(1));
  std::lock_guard lock(mutex_);
  if (stopping_ || dead_) return Gone();
  if (in_flight_.load() >= info_.max_running_requests + info_.max_queued_requests) {
    return Error(
        StatusCode::kResourceExhausted,
        fmt::format("the queue is full: {} requests are waiting", info_.max_queued_requests));
  }
  in_flight_.fetch_add(1);
  Post({.kind = Command::Kind::kSubmit, .submit = std::move(stream)});
  return OkStatus();
}

Status EngineThread::Gone() const {
  return Error(StatusCode::kUnavailable, dead_ ? "the engine has died" : "the engine has stopped");
}

void EngineThread::Abort(StreamId stream) {
  std::lock_guard lock(mutex_);
  Post({.kind = Command::Kind::kAbort, .abort = stream});
  if (std::erase(awaited_, stream) > 0 && awaited_.empty()) cancel_step_ = true;
}

// Idle, or paused without cells, means that the engine's thread has nothing left to do before the
// flush but the pause itself, so it is done before anything that comes later.
Status EngineThread::FlushCache() {
  std::lock_guard lock(mutex_);
  if (in_flight_.load() > 0 && !holds_no_cells_) {
    return Error(StatusCode::kFailedPrecondition, "requests are running or waiting");
  }
  counters_.kv_cached.store(0);
  Post({.kind = Command::Kind::kFlush});
  return OkStatus();
}

Status EngineThread::Pause(PauseMode mode) {
  std::lock_guard lock(mutex_);
  if (stopping_ || dead_) return Gone();
  paused_.store(true);
  if (mode != PauseMode::kInPlace) holds_no_cells_ = true;
  Post({.kind = Command::Kind::kPause, .pause = mode});
  return OkStatus();
}

Status EngineThread::Continue() {
  std::lock_guard lock(mutex_);
  if (stopping_ || dead_) return Gone();
  paused_.store(false);
  holds_no_cells_ = false;
  Post({.kind = Command::Kind::kContinue});
  return OkStatus();
}

void EngineThread::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    cancel_step_ = true;
  }
  wake_.notify_one();
  std::call_once(joined_, [this] { thread_.join(); });
}

EngineLoad EngineThread::load() const {
  EngineLoad load;
  load.running = counters_.running.load();
  load.waiting = std::max<int64_t>(in_flight_.load() - load.running, 0);
  load.kv_cells_used = counters_.kv_used.load();
  load.kv_cells_cached = counters_.kv_cached.load();
  load.kv_cells_total = info_.max_total_tokens;
  load.prompt_tokens = counters_.prompt_tokens.load();
  load.cached_tokens = counters_.cached_tokens.load();
  load.generated_tokens = counters_.generated_tokens.load();
  load.retractions = counters_.retractions.load();
  load.steps = counters_.steps.load();
  load.paused = paused_.load();
  load.healthy = !dead_;
  return load;
}

// With mutex_ held.
void EngineThread::Post(Command command) {
  commands_.push_back(std::move(command));
  if (commands_.size() == 1) wake_.notify_one();
}

void EngineThread::Loop() {
  pthread_setname_np(pthread_self(), "llama");
  std::vector<Command> commands;
  while (TakeCommands(&commands)) {
    try {
      for (Command& command : commands) Apply(std::move(command));
      if (!commands.empty()) Deliver();
      if (!frozen_ && RunStep()) Deliver();
    } catch (const std::exception& e) {
      for (Command& command : commands) Apply(std::move(command));  // those that are left
      Die(Error(StatusCode::kInternal, fmt::format("the engine failed: {}", e.what())));
    }
    commands.clear();
  }
  for (Command& command : commands) Apply(std::move(command));
  EndAll(FinishReason::kAbort, OkStatus());
}

// Waits for work. False: the engine stops; the commands are the last.
bool EngineThread::TakeCommands(std::vector<Command>* commands) {
  std::unique_lock lock(mutex_);
  const bool idle = frozen_ || scheduler_.running() + scheduler_.waiting() == 0;
  if (idle) wake_.wait(lock, [this] { return stopping_ || !commands_.empty(); });
  commands->swap(commands_);
  return !stopping_;
}

void EngineThread::Apply(Command command) {
  switch (command.kind) {
    case Command::Kind::kSubmit:
      if (command.submit != nullptr) scheduler_.Add(std::move(command.submit));
      return;
    case Command::Kind::kAbort:
      return End(command.abort, /*keep=*/true, FinishReason::kAbort, OkStatus());
    case Command::Kind::kFlush:
      return cache_.Flush();
    case Command::Kind::kPause:
      return Freeze(command.pause);
    case Command::Kind::kContinue:
      frozen_ = false;
      return;
    case Command::Kind::kSwap:
      if (command.swap != nullptr) Swap(command.swap.get());
      return;
  }
}

void EngineThread::Freeze(PauseMode mode) {
  frozen_ = true;
  if (mode == PauseMode::kRetract) scheduler_.RetractAll();
  if (mode != PauseMode::kAbort) return;
  while (const ScheduledRequest* any = scheduler_.Any()) {
    End(any->stream, /*keep=*/true, FinishReason::kAbort, OkStatus());
  }
}

// False: there was nothing to do.
bool EngineThread::RunStep() {
  const Step step = scheduler_.Next();
  for (const ScheduledRequest* request : step.too_long) {
    End(request->stream, /*keep=*/true, FinishReason::kError,
        Error(StatusCode::kResourceExhausted,
              fmt::format("the KV cache holds {} tokens, which is too few for this request",
                          cache_.cells())));
  }
  if (step.chunks.empty()) return !step.too_long.empty();
  BeginStep(step);
  const Status status = runner_->Run(step, cancel_step_);
  EndStep();
  if (status.code() == StatusCode::kCancelled) {
    scheduler_.Undo(step);
    for (const Chunk& chunk : step.chunks) {
      End(chunk.request->stream, /*keep=*/true, FinishReason::kAbort, OkStatus());
    }
    return true;
  }
  if (!status.ok()) {
    FailStep(step, status);
    return true;
  }
  failures_ = 0;
  counters_.steps.fetch_add(1);
  scheduler_.Computed(step);
  int32_t row = 0;
  for (const Chunk& chunk : step.chunks) {
    Consume(chunk, row);
    row += chunk.rows;
  }
  return true;
}

// A step of which every stream has been aborted is cancelled: a long prompt takes seconds.
void EngineThread::BeginStep(const Step& step) {
  std::lock_guard lock(mutex_);
  for (const Chunk& chunk : step.chunks) awaited_.push_back(chunk.request->stream);
  for (const Command& command : commands_) {
    if (command.kind == Command::Kind::kAbort) std::erase(awaited_, command.abort);
  }
  cancel_step_ = stopping_ || awaited_.empty();
}

void EngineThread::EndStep() {
  std::lock_guard lock(mutex_);
  awaited_.clear();
}

void EngineThread::Consume(const Chunk& chunk, int32_t first_row) {
  auto* stream = static_cast<Stream*>(chunk.request);
  const int32_t end = chunk.begin + chunk.count;
  for (int32_t i = 0; i < chunk.rows; ++i) {
    stream->TakePromptRow(end - chunk.rows + i, runner_->Logits(first_row + i), &scratch_);
  }
  if (!chunk.last) return;
  TokenDelta delta;
  stream->TakeLastRow(runner_->Logits(first_row + chunk.rows - 1), &scratch_, &delta);
  counters_.generated_tokens.fetch_add(delta.tokens.size());
  TokenSink* const sink = stream->sink;
  if (delta.finish != FinishReason::kNone) {
    scheduler_.Finish(stream->stream, /*keep=*/delta.finish != FinishReason::kError);
    ++ended_;
  }
  outbox_.Add(sink, std::move(delta));
}

void EngineThread::End(StreamId stream, bool keep, FinishReason reason, const Status& error) {
  const std::unique_ptr<ScheduledRequest> request = scheduler_.Finish(stream, keep);
  if (request == nullptr) return;
  auto* ended = static_cast<Stream*>(request.get());
  TokenDelta delta;
  ended->End(reason, error, &delta);
  ++ended_;
  outbox_.Add(ended->sink, std::move(delta));
}

void EngineThread::EndAll(FinishReason reason, const Status& error) {
  while (const ScheduledRequest* any = scheduler_.Any())
    End(any->stream, /*keep=*/false, reason, error);
  Deliver();
}

// The streams of a failed step end; a model that fails again and again is given up.
void EngineThread::FailStep(const Step& step, const Status& error) {
  spdlog::error("llama: {}", MessageOf(error));
  for (const Chunk& chunk : step.chunks) {
    End(chunk.request->stream, /*keep=*/false, FinishReason::kError, error);
  }
  if (++failures_ >= kMostFailures) Die(error);
}

void EngineThread::Die(const Status& error) {
  spdlog::error("llama: the engine gives up: {}", MessageOf(error));
  {
    std::lock_guard lock(mutex_);
    dead_ = true;
    for (Command& command : commands_) Apply(std::move(command));
    commands_.clear();
  }
  EndAll(FinishReason::kError, error);
}

// The counters come first: who sees a stream end finds its cells free and its place empty.
void EngineThread::Deliver() {
  Count();
  in_flight_.fetch_sub(std::exchange(ended_, 0));
  outbox_.Deliver();
}

void EngineThread::Count() {
  counters_.running.store(scheduler_.running());
  counters_.kv_used.store(cache_.used());
  counters_.kv_cached.store(cache_.cached());
  counters_.retractions.store(scheduler_.retractions());
  counters_.prompt_tokens.store(scheduler_.prompt_tokens());
  counters_.cached_tokens.store(scheduler_.cached_tokens());
}

}  // namespace portico::llama
