#include "engine/mock/mock_pooling_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/mutex.h"
#include "message/queue_full.h"

namespace portico {
namespace {

constexpr int32_t kMockEmbeddingSize = 64;

EngineInfo InfoOf(const MockEngineOptions& options) {
  EngineInfo info;
  info.name = "mock";
  info.model_path = options.model_path;
  info.vocab_size = options.vocab_size;
  info.context_length = options.context_length;
  info.max_running_requests = options.max_running_requests;
  info.max_queued_requests = options.max_queued_requests;
  info.eos_token_ids = options.eos_token_ids;
  info.task = options.task;
  info.token_types = 2;
  info.can.pooling = true;
  info.can.pause = true;
  if (options.task == ModelTask::kClassify) {
    for (int32_t i = 0; i < std::max(options.labels, 1); ++i) {
      info.labels.push_back(fmt::format("LABEL_{}", i));
    }
    return info;
  }
  info.embedding_size = kMockEmbeddingSize;
  info.embedding_sizes = {kMockEmbeddingSize / 4, kMockEmbeddingSize / 2};
  info.normalized = true;
  return info;
}

// `count` numbers in [-scale, scale] that follow from the tokens, their order and types.
std::vector<float> ValuesOf(const PoolingRequest& request, size_t count, float scale) {
  uint64_t hash = 0;
  const std::vector<TokenId>& tokens = *request.tokens;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint64_t type = request.token_types.empty() ? 0 : request.token_types[i];
    hash = MockHash(hash ^ (type << 32) ^ static_cast<uint64_t>(tokens[i]));
  }
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) {
    const auto fraction = static_cast<float>(MockHash(hash + i) >> 40) / (1 << 24);
    values[i] = scale * (2 * fraction - 1);
  }
  return values;
}

PoolingOutput OutputOf(const PoolingRequest& request, FinishReason finish, Status error) {
  PoolingOutput output;
  output.stream = request.stream;
  output.finish = finish;
  output.prompt_tokens = static_cast<int32_t>(request.tokens->size());
  output.error = std::move(error);
  return output;
}

Status Died() { return Error(StatusCode::kUnavailable, "the mock engine failed"); }

}  // namespace

MockPoolingEngine::MockPoolingEngine(MockEngineOptions options)
    : options_(std::move(options)),
      info_(InfoOf(options_)),
      ttft_(std::chrono::duration_cast<Duration>(
          std::chrono::duration<double, std::milli>(options_.ttft_ms))) {
  thread_ = std::thread([this] { Run(); });
}

Status MockPoolingEngine::CheckServing() const {
  if (state_ == State::kServing) return OkStatus();
  return state_ == State::kDead ? Died()
                                : Error(StatusCode::kUnavailable, "the engine is stopping");
}

Status MockPoolingEngine::Submit(GenerateRequest, TokenSink*) {
  return Error(StatusCode::kFailedPrecondition, "the engine mock gives no tokens here");
}

Status MockPoolingEngine::SubmitPooling(std::vector<PoolingRequest> requests, PoolingSink* sink) {
  if (requests.empty()) return OkStatus();
  {
    const MutexLock lock(&mutex_);
    PORTICO_RETURN_IF_ERROR(CheckServing());
    if (live_ >= int64_t{options_.max_running_requests} + options_.max_queued_requests) {
      return Error(StatusCode::kResourceExhausted, "the request queue is full", {}, kQueueFull);
    }
    Group group;
    group.sink = sink;
    for (PoolingRequest& request : requests) {
      const MockFaultPlan plan = PlanMockFault(options_.faults, options_.seed, submitted_++, 0);
      group.texts.push_back({std::move(request), plan.fault});
    }
    ++live_;
    inbox_.Submit(std::move(group));
  }
  wake_.NotifyOne();
  return OkStatus();
}

void MockPoolingEngine::Abort(StreamId stream, ShardIndex) {
  {
    const MutexLock lock(&mutex_);
    inbox_.Abort(stream);
  }
  wake_.NotifyOne();
}

EngineLoad MockPoolingEngine::load() const {
  const MutexLock lock(&mutex_);
  EngineLoad load = load_;
  load.paused = paused_;
  load.waiting = live_ - load.running;
  return load;
}

void MockPoolingEngine::Control(EngineControl control, TimePoint, ControlDone done) {
  done(
      std::visit(Overloaded{[](const FlushCacheControl&) { return OkStatus(); },  // there is none
                            [this](const PauseControl& pause) { return PostPause(pause.mode); },
                            [this](const ContinueControl&) { return PostPause(std::nullopt); },
                            [this](const auto& other) { return CannotControl(info_.name, other); }},
                 control));
}

Status MockPoolingEngine::PostPause(std::optional<PauseMode> mode) {
  {
    const MutexLock lock(&mutex_);
    PORTICO_RETURN_IF_ERROR(CheckServing());
    paused_ = mode.has_value();
    inbox_.Pause(mode);
  }
  wake_.NotifyOne();
  return OkStatus();
}

void MockPoolingEngine::Stop() {
  {
    const MutexLock lock(&mutex_);
    if (state_ == State::kServing) state_ = State::kStopping;
  }
  wake_.NotifyOne();
  const MutexLock lock(&join_mutex_);
  if (thread_.joinable()) thread_.join();
}

void MockPoolingEngine::Run() {
  Inbox work;
  while (WaitForWork(&work)) {
    Handle(&work);
    if (!frozen_at_) {
      const TimePoint now = Clock::now();
      if (!ComputeDue(now)) {
        EndAll(FinishReason::kError, Died());
        return;
      }
      AdmitWaiting(now);
    }
    PublishAndDeliver();
  }
  EndAll(FinishReason::kAbort, OkStatus());
}

bool MockPoolingEngine::WaitForWork(Inbox* work) {
  const auto next = std::find_if(running_.begin(), running_.end(),
                                 [](const Group& group) { return !group.computed; });
  const MutexLock lock(&mutex_);
  while (state_ == State::kServing && inbox_.empty()) {
    if (next == running_.end() || frozen_at_) {
      wake_.Wait(&mutex_);
    } else if (!wake_.WaitUntil(&mutex_, next->due)) {
      break;
    }
  }
  if (state_ != State::kServing) return false;
  std::swap(*work, inbox_);
  return true;
}

void MockPoolingEngine::Handle(Inbox* work) {
  work->Take([&](Group group) { waiting_.push_back(std::move(group)); },
             [&](std::optional<PauseMode> mode) { mode ? Freeze(*mode) : Thaw(); },
             [&](const std::vector<StreamId>& ids) {
               const absl::flat_hash_set<StreamId> streams(ids.begin(), ids.end());
               AbortTexts(streams, &running_);
               AbortTexts(streams, &waiting_);
             });
}

void MockPoolingEngine::AbortTexts(const absl::flat_hash_set<StreamId>& streams,
                                   std::deque<Group>* groups) {
  for (Group& group : *groups) {
    std::erase_if(group.texts, [&](const Text& text) {
      if (!streams.contains(text.request.stream)) return false;
      outbox_.Add(group.sink, OutputOf(text.request, FinishReason::kAbort, OkStatus()));
      return true;
    });
  }
  std::erase_if(*groups, [](const Group& group) { return group.texts.empty(); });
}

void MockPoolingEngine::Freeze(PauseMode mode) {
  if (!frozen_at_) frozen_at_ = Clock::now();
  if (mode == PauseMode::kInPlace) return;
  if (mode == PauseMode::kAbort) {
    EndAll(&running_, FinishReason::kAbort, OkStatus());
    EndAll(&waiting_, FinishReason::kAbort, OkStatus());
    return;
  }
  now_.retractions += running_.size();
  for (Group& group : running_) group.computed = false;
  std::move(running_.rbegin(), running_.rend(), std::front_inserter(waiting_));
  running_.clear();
}

void MockPoolingEngine::Thaw() {
  if (!frozen_at_) return;
  const Duration pause = Clock::now() - *frozen_at_;
  frozen_at_.reset();
  for (Group& group : running_) group.due += pause;
}

void MockPoolingEngine::AdmitWaiting(TimePoint now) {
  const auto slots = static_cast<size_t>(std::max(options_.max_running_requests, 1));
  while (!waiting_.empty() && running_.size() < slots) {
    waiting_.front().due = now + ttft_;
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

bool MockPoolingEngine::ComputeDue(TimePoint now) {
  bool computed = false;
  for (Group& group : running_) {
    if (group.computed) continue;
    if (group.due > now) break;
    computed = true;
    if (!Compute(&group)) return false;
  }
  if (computed) ++now_.steps;
  std::erase_if(running_, [](const Group& group) { return group.texts.empty(); });
  return true;
}

bool MockPoolingEngine::Compute(Group* group) {
  const bool dies = std::any_of(group->texts.begin(), group->texts.end(),
                                [](const Text& text) { return text.fault == MockFault::kDie; });
  if (dies) return false;
  for (const Text& text : group->texts) {
    if (text.fault != MockFault::kStall) outbox_.Add(group->sink, Answer(text));
  }
  std::erase_if(group->texts, [](const Text& text) { return text.fault != MockFault::kStall; });
  group->computed = true;
  return true;
}

PoolingOutput MockPoolingEngine::Answer(const Text& text) {
  if (text.fault == MockFault::kError) {
    return OutputOf(text.request, FinishReason::kError,
                    Error(StatusCode::kInternal, "the mock engine failed this request"));
  }
  PoolingOutput output = OutputOf(text.request, FinishReason::kStop, OkStatus());
  now_.prompt_tokens += static_cast<uint64_t>(output.prompt_tokens);
  output.values = info_.task == ModelTask::kClassify
                      ? ValuesOf(text.request, info_.labels.size(), 4)
                      : ValuesOf(text.request, kMockEmbeddingSize, 1);
  return output;
}

void MockPoolingEngine::EndAll(FinishReason reason, const Status& error) {
  {
    // From here on nothing is submitted, so nothing is left behind in the inbox.
    const MutexLock lock(&mutex_);
    if (reason == FinishReason::kError) state_ = State::kDead;
    inbox_.Take([&](Group group) { waiting_.push_back(std::move(group)); }, [](auto) {},
                [](const auto&) {});
  }
  EndAll(&running_, reason, error);
  EndAll(&waiting_, reason, error);
  now_.healthy = reason != FinishReason::kError;
  PublishAndDeliver();
}

void MockPoolingEngine::EndAll(std::deque<Group>* groups, FinishReason reason,
                               const Status& error) {
  for (const Group& group : *groups) {
    for (const Text& text : group.texts)
      outbox_.Add(group.sink, OutputOf(text.request, reason, error));
  }
  groups->clear();
}

void MockPoolingEngine::PublishAndDeliver() {
  now_.running = static_cast<int64_t>(running_.size());
  {
    const MutexLock lock(&mutex_);
    live_ = static_cast<int64_t>(running_.size() + waiting_.size() + inbox_.submits());
    load_ = now_;
  }
  outbox_.Deliver();
}

}  // namespace portico
