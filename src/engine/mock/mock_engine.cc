#include "engine/mock/mock_engine.h"

#include <algorithm>
#include <utility>

#include "base/mutex.h"
#include "engine/engine_events.h"
#include "engine/mock/mock_engine_thread.h"
#include "engine/mock/mock_pooling_engine.h"
#include "engine/mock/simulated_engine.h"
#include "message/queue_full.h"

namespace portico {
namespace {

// A step serves at most this many streams, so that a new one is not kept waiting by all the others.
constexpr size_t kStreamsPerStep = 1024;
// Due times in the future are rounded up to it.
using Tick = std::chrono::milliseconds;

EngineInfo InfoOf(const MockEngineOptions& options) {
  EngineInfo info;
  info.name = "mock";
  info.model_path = options.model_path;
  info.vocab_size = options.vocab_size;
  info.context_length = options.context_length;
  info.default_max_new_tokens = kMockDefaultTokens;
  info.max_total_tokens = int64_t{options.context_length} * options.max_running_requests;
  info.max_running_requests = options.max_running_requests;
  info.max_queued_requests = options.max_queued_requests;
  info.eos_token_ids = options.eos_token_ids;
  info.can.logprobs = true;
  info.can.prompt_logprobs = true;
  info.can.pause = true;
  return info;
}

MockModel ModelOf(const MockEngineOptions& options) {
  MockModel model;
  model.vocab_size = options.vocab_size;
  model.tokens_per_step = std::max(options.tokens_per_step, 1);
  const auto duration = [](double ms) {
    return std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(ms));
  };
  model.ttft = duration(options.ttft_ms);
  model.itl = duration(options.itl_ms);
  for (const TokenId id : options.special_ids) {
    if (id < 0) continue;
    const auto index = static_cast<size_t>(id);
    if (index >= model.special.size()) model.special.resize(index + 1);
    model.special[index] = true;
  }
  return model;
}

}  // namespace

MockEngine::MockEngine(MockEngineOptions options)
    : options_(std::move(options)), info_(InfoOf(options_)), model_(ModelOf(options_)) {
  now_.kv_cells_total = info_.max_total_tokens;
  load_ = now_;
  thread_ = std::thread([this] { Run(); });
}

Status MockEngine::CheckServing() const {
  if (state_ == State::kServing) return OkStatus();
  return Error(StatusCode::kUnavailable,
               state_ == State::kDead ? "the mock engine failed" : "the engine is stopping");
}

Status MockEngine::Submit(GenerateRequest request, TokenSink* sink) {
  {
    const MutexLock lock(&mutex_);
    PORTICO_RETURN_IF_ERROR(CheckServing());
    if (live_ >= int64_t{options_.max_running_requests} + options_.max_queued_requests) {
      return Error(StatusCode::kResourceExhausted, "the request queue is full", {}, kQueueFull);
    }
    const MockFaultPlan fault =
        PlanMockFault(options_.faults, options_.seed, submitted_++, request.max_new_tokens);
    ++live_;
    inbox_.Submit(std::make_unique<MockStream>(std::move(request), sink, fault));
  }
  wake_.NotifyOne();
  return OkStatus();
}

void MockEngine::Abort(StreamId stream, ShardIndex) {
  {
    const MutexLock lock(&mutex_);
    inbox_.Abort(stream);
  }
  wake_.NotifyOne();
}

EngineLoad MockEngine::load() const {
  const MutexLock lock(&mutex_);
  EngineLoad load = load_;
  load.paused = paused_;
  load.waiting = live_ - load.running;
  return load;
}

void MockEngine::Control(EngineControl control, TimePoint, ControlDone done) {
  done(
      std::visit(Overloaded{[this](const FlushCacheControl&) { return FlushCache(); },
                            [this](const PauseControl& pause) { return Pause(pause.mode); },
                            [this](const ContinueControl&) { return Continue(); },
                            [this](const auto& other) { return CannotControl(info_.name, other); }},
                 control));
}

Status MockEngine::FlushCache() {
  const MutexLock lock(&mutex_);
  if (live_ > 0 && !holds_no_cells_) {
    return Error(StatusCode::kFailedPrecondition, "requests are running or waiting");
  }
  return OkStatus();
}

void MockEngine::Stop() {
  {
    const MutexLock lock(&mutex_);
    if (state_ == State::kServing) state_ = State::kStopping;
  }
  wake_.NotifyOne();
  const MutexLock lock(&join_mutex_);
  if (thread_.joinable()) thread_.join();
}

void MockEngine::Run() {
  Inbox work;
  while (WaitForWork(&work)) {
    const TimePoint now = Clock::now();
    Handle(&work, now);
    if (frozen_at_) {
      PublishLoad();
      outbox_.Deliver();
      continue;
    }
    AdmitWaiting(now);
    if (!ServeDue(now)) {
      EndAll(FinishReason::kError, Error(StatusCode::kUnavailable, "the mock engine failed"));
      return;
    }
    AdmitWaiting(now);  // to the slots of those that have just ended
    PublishLoad();
    outbox_.Deliver();
  }
  EndAll(FinishReason::kAbort, OkStatus());
}

bool MockEngine::WaitForWork(Inbox* work) {
  const bool timed = !timers_.empty() && !frozen_at_;
  const MutexLock lock(&mutex_);
  if (!timed && !called()) {
    // Threads that share this one's core may be about to submit more, and to be woken for each costs more.
    mutex_.Unlock();
    std::this_thread::yield();
    mutex_.Lock();
  }
  // A wait that is over costs two system calls for nothing.
  if (!timed || timers_.top().due > Clock::now()) {
    while (!called()) {
      if (!timed) {
        wake_.Wait(&mutex_);
      } else if (!wake_.WaitUntil(&mutex_, timers_.top().due)) {
        break;
      }
    }
  }
  if (state_ != State::kServing) return false;
  std::swap(*work, inbox_);
  return true;
}

void MockEngine::Handle(Inbox* work, TimePoint now) {
  work->Take(
      [&](StreamPtr stream) {
        engine_events::Queued(stream->id(), stream->prompt_tokens());
        waiting_.push_back(std::move(stream));
      },
      [&](std::optional<PauseMode> mode) { mode ? Freeze(*mode) : Thaw(now); },
      [&](const std::vector<StreamId>& ids) {
        for (const StreamId id : ids) AbortStream(id);
      });
}

void MockEngine::AbortStream(StreamId id) {
  StreamPtr stream;
  if (const auto it = running_.find(id); it != running_.end()) {
    stream = std::move(it->second);
    running_.erase(it);
    now_.kv_cells_used -= stream->cells();
  } else {
    const auto waits = std::find_if(waiting_.begin(), waiting_.end(),
                                    [id](const StreamPtr& s) { return s->id() == id; });
    if (waits == waiting_.end()) return;
    stream = std::move(*waits);
    waiting_.erase(waits);
    if (stream->started()) --now_.retracted;
  }
  outbox_.Add(stream->sink(), stream->Ended(FinishReason::kAbort, OkStatus()));
}

void MockEngine::AdmitWaiting(TimePoint now) {
  const auto slots = static_cast<size_t>(std::max(options_.max_running_requests, 1));
  while (!waiting_.empty() && running_.size() < slots) {
    StreamPtr stream = std::move(waiting_.front());
    waiting_.pop_front();
    if (stream->started()) {
      --now_.retracted;
    } else {
      now_.prompt_tokens += static_cast<uint64_t>(stream->prompt_tokens());
      engine_events::PrefillStarts(stream->id(), stream->prompt_tokens(), 0);
    }
    stream->Start(now, model_);
    now_.kv_cells_used += stream->cells();
    Schedule(now, *stream);
    const StreamId id = stream->id();
    running_.emplace(id, std::move(stream));
  }
}

void MockEngine::Schedule(TimePoint now, const MockStream& stream) {
  // One that is late goes behind those that wait already: without an itl all are late, and take
  // turns.
  TimePoint due = std::max(stream.due(), now);
  if (due > now) due = TimePoint(std::chrono::ceil<Tick>(due.time_since_epoch()));
  timers_.push({due, next_order_++, stream.id()});
}

bool MockEngine::ServeDue(TimePoint now) {
  due_.clear();
  while (!timers_.empty() && timers_.top().due <= now && due_.size() < kStreamsPerStep) {
    const auto it = running_.find(timers_.top().stream);
    timers_.pop();
    if (it == running_.end()) continue;  // aborted since it was scheduled
    due_.push_back(it->second.get());
    due_.back()->PrefetchState();
  }
  if (due_.empty()) return true;
  const uint64_t before = now_.generated_tokens;
  for (const MockStream* stream : due_) stream->PrefetchPrompt();
  for (MockStream* stream : due_) {
    if (!ServeStream(now, stream)) return false;
  }
  // One that finds only stalled streams is none: to whoever watches the engine hangs.
  if (now_.generated_tokens != before) ++now_.steps;
  if (events::On()) engine_events::Stepped(due_.size(), Clock::now() - now);
  return true;
}

bool MockEngine::ServeStream(TimePoint now, MockStream* served) {
  MockStream& stream = *served;
  const int64_t cells_before = stream.cells();
  if (cells_before == stream.prompt_tokens()) engine_events::First(stream.id());
  TokenDelta delta;
  const MockStream::Outcome outcome = stream.Produce(now, kMockTokensPerDelivery, model_, &delta);
  now_.generated_tokens += delta.tokens.size();
  now_.kv_cells_used += stream.cells() - cells_before;
  if (!delta.tokens.empty() || !delta.prompt_logprobs.empty() ||
      delta.finish != FinishReason::kNone) {
    outbox_.Add(stream.sink(), std::move(delta));
  }
  switch (outcome) {
    case MockStream::Outcome::kMore:
      Schedule(now, stream);
      return true;
    case MockStream::Outcome::kStalled:
      return true;
    case MockStream::Outcome::kFinished:
    case MockStream::Outcome::kEngineDies:
      engine_events::Ended(stream.id());
      now_.kv_cells_used -= stream.cells();
      running_.erase(stream.id());
      return outcome == MockStream::Outcome::kFinished;
  }
  return true;
}

void MockEngine::EndAll(FinishReason reason, const Status& error) {
  {
    // From here on nothing is submitted, so nothing is left behind in the inbox.
    const MutexLock lock(&mutex_);
    if (reason == FinishReason::kError) state_ = State::kDead;
    inbox_.Take([&](StreamPtr stream) { waiting_.push_back(std::move(stream)); }, [](auto) {},
                [](const auto&) {});
  }
  for (const auto& [id, stream] : running_)
    outbox_.Add(stream->sink(), stream->Ended(reason, error));
  for (const StreamPtr& stream : waiting_)
    outbox_.Add(stream->sink(), stream->Ended(reason, error));
  running_.clear();
  waiting_.clear();
  timers_ = {};
  now_.kv_cells_used = 0;
  now_.retracted = 0;
  now_.healthy = reason != FinishReason::kError;
  PublishLoad();
  outbox_.Deliver();
}

void MockEngine::PublishLoad() {
  now_.running = static_cast<int64_t>(running_.size());
  const auto held = static_cast<int64_t>(running_.size() + waiting_.size());
  const MutexLock lock(&mutex_);
  live_ = held + static_cast<int64_t>(inbox_.submits());
  load_ = now_;
}

std::unique_ptr<Engine> NewMockEngine(MockEngineOptions options) {
  if (options.task != ModelTask::kGenerate) {
    return std::make_unique<MockPoolingEngine>(std::move(options));
  }
  if (options.simulation) return NewSimulatedEngine(std::move(options));
  return std::make_unique<MockEngine>(std::move(options));
}

}  // namespace portico
