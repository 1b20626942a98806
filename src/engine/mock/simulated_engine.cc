#include "engine/mock/simulated_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/mutex.h"
#include "engine/kv_events.h"
#include "engine/llama/generation/scheduler.h"
#include "engine/llama/kv/block_log.h"
#include "engine/llama/step_engine.h"
#include "engine/outbox.h"

namespace portico {
namespace {

using llama::Chunk;
using llama::ScheduledRequest;
using llama::Step;

// Cached prefixes beside those of running requests.
constexpr int32_t kKeptSequences = 16384;

// Cells that hold nothing.
class NoMemory final : public llama::KvMemory {
 public:
  void Share(int32_t, int32_t, int32_t, int32_t) override {}
  void Remove(int32_t, int32_t, int32_t) override {}
};

struct SimulatedStream final : ScheduledRequest {
  GenerateRequest request;
  TokenSink* sink = nullptr;
  size_t cursor = 0;  // in the prompt: where the next token is
};

EngineInfo InfoOf(const MockEngineOptions& options) {
  EngineInfo info;
  info.name = "mock";
  info.model_path = options.model_path;
  info.vocab_size = options.vocab_size;
  info.context_length = options.context_length;
  info.default_max_new_tokens = kMockDefaultTokens;
  info.max_total_tokens = options.simulation->kv_cells;
  info.max_running_requests = options.max_running_requests;
  info.max_queued_requests = options.max_queued_requests;
  info.eos_token_ids = options.eos_token_ids;
  info.can.pause = true;
  return info;
}

llama::SchedulerOptions SchedulingOf(const MockEngineOptions& options) {
  return {.max_running = options.max_running_requests,
          .prefill_tokens = options.simulation->chunk_tokens,
          .max_rows = options.max_running_requests + 1};
}

class SimulatedEngine final : public llama::StepEngine, public KvEventSource {
 public:
  explicit SimulatedEngine(MockEngineOptions options)
      : StepEngine(InfoOf(options), "simulated"),
        times_(*options.simulation),
        cache_(&memory_, times_.kv_cells, options.max_running_requests,
               std::max(kKeptSequences, options.max_running_requests)),
        scheduler_(SchedulingOf(options), &cache_) {
    for (const TokenId id : options.special_ids) {
      if (id < 0) continue;
      const auto index = static_cast<size_t>(id);
      if (index >= special_.size()) special_.resize(index + 1);
      special_[index] = true;
    }
    cache_.TellTo(&block_log_);
    Start();
  }
  ~SimulatedEngine() override { Stop(); }

  Status Submit(GenerateRequest request, TokenSink* sink) override {
    const auto prompt_tokens = static_cast<int64_t>(request.prompt->size());
    if (prompt_tokens >= info_.max_total_tokens) {
      return ContextExceeded("prompt", fmt::format("the prompt has {} tokens, the KV cache only {}",
                                                   prompt_tokens, info_.max_total_tokens));
    }
    auto stream = std::make_unique<SimulatedStream>();
    stream->stream = request.stream;
    stream->prompt = request.prompt;
    stream->max_new_tokens = request.max_new_tokens;
    stream->next_logprob = static_cast<int32_t>(prompt_tokens);
    stream->request = std::move(request);
    stream->sink = sink;
    return Accept(
        [this, stream = std::move(stream)]() mutable { scheduler_.Add(std::move(stream)); });
  }

  KvEventHub* kv_events() override { return &kv_events_; }

  EngineLoad load() const override {
    EngineLoad load = LoadWith(running_.load());
    load.kv_cells_used = used_.load();
    load.kv_cells_cached = cached_.load();
    load.kv_cells_total = info_.max_total_tokens;
    load.prompt_tokens = prompt_tokens_.load();
    load.cached_tokens = cached_tokens_.load();
    load.generated_tokens = generated_.load();
    load.steps = steps_.load();
    return load;
  }

 private:
  Status FlushCache() override {
    const MutexLock lock(&mutex_);
    if (cells_are_held()) {
      return Error(StatusCode::kFailedPrecondition, "requests are running or waiting");
    }
    Post([this] { cache_.Flush(); });
    return OkStatus();
  }

  bool idle() const override { return scheduler_.running() + scheduler_.waiting() == 0; }

  bool RunStep() override {
    const Step step = scheduler_.Next();
    for (const ScheduledRequest* request : step.too_long) {
      End(request->stream, true, FinishReason::kError,
          Error(StatusCode::kResourceExhausted, "the KV cache is too small for this request"));
    }
    if (step.chunks.empty()) return !step.too_long.empty();
    double took_us = times_.step_ms * 1e3;
    for (const Chunk& chunk : step.chunks) {
      const bool decodes = chunk.begin >= static_cast<int32_t>(chunk.request->prompt->size());
      took_us += decodes ? times_.decode_us : times_.prefill_us * chunk.count;
    }
    // From the end of the last one, so that what this thread does itself costs nothing.
    const TimePoint now = Clock::now();
    const TimePoint from = now - end_ < std::chrono::milliseconds(20) ? end_ : now;
    end_ = from +
           std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::micro>(took_us));
    std::this_thread::sleep_until(end_);
    ++steps_;
    scheduler_.Computed(step);
    for (const Chunk& chunk : step.chunks) {
      if (chunk.last) AddToken(static_cast<SimulatedStream*>(chunk.request));
    }
    return true;
  }

  TokenId NextToken(SimulatedStream* stream) const {
    const std::vector<TokenId>& prompt = *stream->prompt;
    for (size_t looked = 0; looked < prompt.size(); ++looked) {
      const TokenId token = prompt[stream->cursor++ % prompt.size()];
      if (static_cast<size_t>(token) >= special_.size() || !special_[static_cast<size_t>(token)]) {
        return token;
      }
    }
    return prompt.back();
  }

  void AddToken(SimulatedStream* stream) {
    const TokenId token = NextToken(stream);
    stream->tokens.push_back(token);
    ++generated_;
    const SamplingParams& sampling = *stream->request.sampling;
    const int32_t made = Made(*stream);
    const auto& stops = sampling.stop_token_ids;
    FinishReason finish = FinishReason::kNone;
    if (made > sampling.min_new_tokens &&
        std::find(stops.begin(), stops.end(), token) != stops.end()) {
      finish = FinishReason::kStop;
    } else if (made >= stream->max_new_tokens) {
      finish = FinishReason::kLength;
    }
    TokenDelta delta = DeltaOf(*stream, finish, OkStatus());
    delta.tokens.push_back(token);
    if (finish == FinishReason::kStop) delta.matched_token = token;
    TokenSink* const sink = stream->sink;
    if (finish != FinishReason::kNone) {
      scheduler_.Finish(stream->stream, /*keep=*/true);
      CountEnded();
    }
    outbox_.Add(sink, std::move(delta));
  }

  static int32_t Made(const SimulatedStream& stream) {
    return std::max(0, static_cast<int32_t>(stream.tokens.size()) -
                           static_cast<int32_t>(stream.prompt->size()));
  }

  static TokenDelta DeltaOf(const SimulatedStream& stream, FinishReason finish, Status error) {
    TokenDelta delta;
    delta.stream = stream.stream;
    delta.finish = finish;
    delta.error = std::move(error);
    delta.usage.prompt_tokens = static_cast<int32_t>(stream.prompt->size());
    delta.usage.cached_tokens = std::max(0, stream.cached_tokens);
    delta.usage.completion_tokens = Made(stream);
    return delta;
  }

  void End(StreamId id, bool keep, FinishReason reason, const Status& error) {
    const std::unique_ptr<ScheduledRequest> request = scheduler_.Finish(id, keep);
    if (request == nullptr) return;
    const auto* ended = static_cast<const SimulatedStream*>(request.get());
    CountEnded();
    outbox_.Add(ended->sink, DeltaOf(*ended, reason, error));
  }

  void EndAborted(StreamId stream) override {
    End(stream, /*keep=*/true, FinishReason::kAbort, OkStatus());
  }
  void EndAll(FinishReason reason, const Status& error) override {
    while (const ScheduledRequest* any = scheduler_.Any()) End(any->stream, false, reason, error);
    Deliver();
  }
  void Freeze(PauseMode mode) override {
    if (mode == PauseMode::kRetract) scheduler_.RetractAll();
    if (mode != PauseMode::kAbort) return;
    while (const ScheduledRequest* any = scheduler_.Any()) EndAborted(any->stream);
  }

  // The counters come first: who sees a stream end finds its cells free.
  void Deliver() override {
    running_ = scheduler_.running();
    used_ = cache_.used();
    cached_ = cache_.cached();
    prompt_tokens_ = scheduler_.prompt_tokens();
    cached_tokens_ = scheduler_.cached_tokens();
    block_log_.Deliver(&kv_events_);
    ReleaseEnded();
    outbox_.Deliver();
  }

  KvEventHub kv_events_;
  const MockSimulation times_;
  std::vector<bool> special_;  // by id
  std::atomic<int64_t> running_{0}, used_{0}, cached_{0};
  std::atomic<uint64_t> prompt_tokens_{0}, cached_tokens_{0}, generated_{0}, steps_{0};

  // The engine's thread only.
  NoMemory memory_;
  llama::KvCache cache_;
  llama::BlockLog block_log_;
  llama::Scheduler scheduler_;
  Outbox<TokenSink, TokenDelta> outbox_;
  TimePoint end_{};  // of the last step
};

}  // namespace

std::unique_ptr<Engine> NewSimulatedEngine(MockEngineOptions options) {
  return std::make_unique<SimulatedEngine>(std::move(options));
}

}  // namespace portico
