#include "engine/llama/pooling_engine.h"

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

PoolingEngine::PoolingEngine(std::unique_ptr<LlamaModel> model,
                             std::unique_ptr<PoolingRunner> runner, EngineInfo info,
                             const PoolingSchedulerOptions& scheduling, std::string description)
    : info_(std::move(info)),
      description_(std::move(description)),
      model_(std::move(model)),
      runner_(std::move(runner)),
      pooling_(*model_->pooling()),
      scheduler_(scheduling),
      thread_([this] { Loop(); }) {}

Status PoolingEngine::Submit(GenerateRequest, TokenSink*) {
  return Error(StatusCode::kFailedPrecondition,
               fmt::format("{} does not generate tokens", info_.model_path));
}

Status PoolingEngine::SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) {
  if (requests.empty()) return OkStatus();
  const auto request = std::make_shared<Request>();
  request->sink = sink;
  request->texts_left = requests.size();
  Texts texts;
  texts.reserve(requests.size());
  for (PoolingRequest& one : requests) {
    auto text = std::make_unique<Text>();
    text->request = std::move(one);
    text->of = request;
    texts.push_back(std::move(text));
  }
  std::lock_guard lock(mutex_);
  if (stopping_ || dead_) return Gone();
  if (in_flight_.load() >= info_.max_running_requests + info_.max_queued_requests) {
    return Error(
        StatusCode::kResourceExhausted,
        fmt::format("the queue is full: {} requests are waiting", info_.max_queued_requests));
  }
  in_flight_.fetch_add(1);
  Post({.kind = Command::Kind::kSubmit, .submit = std::move(texts)});
  return OkStatus();
}

Status PoolingEngine::Gone() const {
  return Error(StatusCode::kUnavailable, dead_ ? "the engine has died" : "the engine has stopped");
}

void PoolingEngine::Abort(StreamId stream) {
  std::lock_guard lock(mutex_);
  Post({.kind = Command::Kind::kAbort, .abort = stream});
  if (std::erase(awaited_, stream) > 0 && awaited_.empty()) cancel_step_ = true;
}

Status PoolingEngine::Pause(PauseMode mode) {
  return Control({.kind = Command::Kind::kPause, .pause = mode}, true);
}

Status PoolingEngine::Continue() { return Control({.kind = Command::Kind::kContinue}, false); }

Status PoolingEngine::Control(Command command, bool paused) {
  std::lock_guard lock(mutex_);
  if (stopping_ || dead_) return Gone();
  paused_.store(paused);
  Post(std::move(command));
  return OkStatus();
}

void PoolingEngine::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    cancel_step_ = true;
  }
  wake_.notify_one();
  std::call_once(joined_, [this] { thread_.join(); });
}

EngineLoad PoolingEngine::load() const {
  EngineLoad load;
  load.running = running_.load();
  load.waiting = std::max<int64_t>(in_flight_.load() - load.running, 0);
  load.prompt_tokens = prompt_tokens_.load();
  load.steps = steps_.load();
  load.paused = paused_.load();
  load.healthy = !dead_;
  return load;
}

// With mutex_ held.
void PoolingEngine::Post(Command command) {
  commands_.push_back(std::move(command));
  if (commands_.size() == 1) wake_.notify_one();
}

void PoolingEngine::Loop() {
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
bool PoolingEngine::TakeCommands(std::vector<Command>* commands) {
  std::unique_lock lock(mutex_);
  if (frozen_ || scheduler_.empty()) {
    wake_.wait(lock, [this] { return stopping_ || !commands_.empty(); });
  }
  commands->swap(commands_);
  return !stopping_;
}

void PoolingEngine::Apply(Command command) {
  switch (command.kind) {
    case Command::Kind::kSubmit:
      if (!command.submit.empty()) scheduler_.Add(std::move(command.submit));
      return;
    case Command::Kind::kAbort:
      return End(command.abort, FinishReason::kAbort, OkStatus());
    case Command::Kind::kPause:
      return Freeze(command.pause);
    case Command::Kind::kContinue:
      frozen_ = false;
      return;
  }
}

void PoolingEngine::Freeze(PauseMode mode) {
  frozen_ = true;
  if (mode == PauseMode::kInPlace) return;
  if (mode == PauseMode::kAbort) EndAll(FinishReason::kAbort, OkStatus());
  scheduler_.Restart();
  runner_->Clear();
}

// False: there was nothing to do.
bool PoolingEngine::RunStep() {
  const std::vector<Piece> pieces = scheduler_.Next();
  if (pieces.empty()) return false;
  BeginStep(pieces);
  const Status status = runner_->Run(pieces, cancel_step_);
  EndStep();
  if (status.code() == StatusCode::kCancelled) {
    for (const Piece& piece : pieces) {
      End(piece.text->request.stream, FinishReason::kAbort, OkStatus());
    }
    scheduler_.Restart();
    return true;
  }
  if (!status.ok()) {
    FailStep(pieces, status);
    return true;
  }
  failures_ = 0;
  steps_.fetch_add(1);
  int32_t first = 0;
  for (const Piece& piece : pieces) {
    Pool(piece, first);
    first += piece.count;
  }
  prompt_tokens_.fetch_add(static_cast<uint64_t>(first));
  scheduler_.Computed(pieces);
  for (const Piece& piece : pieces) {
    if (piece.text->left() == 0) Answer(AsText(piece.text));
  }
  return true;
}

// A step of which every text has been aborted is cancelled: a long one takes seconds.
void PoolingEngine::BeginStep(const std::vector<Piece>& pieces) {
  const uint64_t step = steps_.load() + 1;
  int64_t running = 0;
  for (const Piece& piece : pieces) {
    Request& request = *AsText(piece.text)->of;
    running += request.step != step ? 1 : 0;
    request.step = step;
  }
  running_.store(running);
  std::lock_guard lock(mutex_);
  for (const Piece& piece : pieces) awaited_.push_back(piece.text->request.stream);
  for (const Command& command : commands_) {
    if (command.kind == Command::Kind::kAbort) std::erase(awaited_, command.abort);
  }
  cancel_step_ = stopping_ || awaited_.empty();
}

void PoolingEngine::EndStep() {
  std::lock_guard lock(mutex_);
  awaited_.clear();
}

// Takes what the piece's hidden states, from `first` on, add to its text's vector.
void PoolingEngine::Pool(const Piece& piece, int32_t first) {
  Text* text = AsText(piece.text);
  const int32_t begin = text->computed;
  const auto take = [&](int32_t token) {
    if (token < begin || token >= begin + piece.count) return;
    const std::span<const float> state = runner_->State(first + token - begin);
    text->pooled.assign(state.begin(), state.end());
  };
  switch (pooling_.pooling) {
    case Pooling::kCls:
      return take(0);
    case Pooling::kLast: {
      int32_t last = text->size() - 1;
      const std::vector<TokenId>& tokens = *text->request.tokens;
      while (pooling_.skips_padding && last > 0 &&
             tokens[static_cast<size_t>(last)] == pooling_.padding_id) {
        --last;
      }
      // Of padding alone the first token counts; so says transformers' argmax over zeros.
      return take(last);
    }
    case Pooling::kMean:
      if (begin == 0) text->pooled.assign(runner_->state_size(), 0.0f);
      for (int32_t i = 0; i < piece.count; ++i) {
        const std::span<const float> state = runner_->State(first + i);
        for (size_t j = 0; j < state.size(); ++j) text->pooled[j] += state[j];
      }
      return;
  }
}

void PoolingEngine::Answer(Text* text) {
  PoolingOutput output;
  output.values = std::move(text->pooled);
  if (pooling_.pooling == Pooling::kMean) {
    for (float& value : output.values) value /= static_cast<float>(text->size());
  }
  if (!pooling_.head.empty()) output.values = pooling_.head.Apply(std::move(output.values));
  Finish(text->request.stream, std::move(output));
}

// The texts of a failed step end; a model that fails again and again is given up.
void PoolingEngine::FailStep(const std::vector<Piece>& pieces, const Status& error) {
  spdlog::error("llama: {}", MessageOf(error));
  for (const Piece& piece : pieces) End(piece.text->request.stream, FinishReason::kError, error);
  scheduler_.Restart();
  if (++failures_ >= kMostFailures) Die(error);
}

void PoolingEngine::Die(const Status& error) {
  spdlog::error("llama: the engine gives up: {}", MessageOf(error));
  {
    std::lock_guard lock(mutex_);
    dead_ = true;
    for (Command& command : commands_) Apply(std::move(command));
    commands_.clear();
  }
  EndAll(FinishReason::kError, error);
}

void PoolingEngine::End(StreamId stream, FinishReason reason, const Status& error) {
  PoolingOutput output;
  output.finish = reason;
  output.error = error;
  Finish(stream, std::move(output));
}

void PoolingEngine::EndAll(FinishReason reason, const Status& error) {
  while (const ScheduledText* any = scheduler_.Any()) End(any->request.stream, reason, error);
  Deliver();
}

void PoolingEngine::Finish(StreamId stream, PoolingOutput output) {
  const std::unique_ptr<ScheduledText> text = scheduler_.Finish(stream);
  if (text == nullptr) return;
  output.stream = stream;
  output.prompt_tokens = text->size();
  Request& request = *AsText(text.get())->of;
  if (--request.texts_left == 0) ++ended_;
  outbox_.Add(request.sink, std::move(output));
}

// The counters come first: who sees a request end finds its place empty.
void PoolingEngine::Deliver() {
  running_.store(0);
  in_flight_.fetch_sub(std::exchange(ended_, 0));
  outbox_.Deliver();
}

}  // namespace portico::llama
