#include "engine/llama/generation/engine_thread.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/mutex.h"
#include "engine/engine_events.h"
#include "fmt/format.h"

namespace portico::llama {

EngineThread::EngineThread(std::unique_ptr<LlamaModel> model, std::unique_ptr<ModelRunner> runner,
                           EngineInfo info, const RunnerOptions& running,
                           const SchedulerOptions& scheduling, int32_t kept_sequences,
                           bool original_logprobs, std::string description)
    : StepEngine(std::move(info), std::move(description)),
      model_(std::move(model)),
      runner_(std::move(runner)),
      runner_options_(running),
      original_logprobs_(original_logprobs),
      next_seed_(uint64_t{std::random_device{}()} << 32),
      cache_(runner_.get(), info_.max_total_tokens, info_.max_running_requests, kept_sequences),
      scheduler_(scheduling, &cache_) {
  cache_.TellTo(&block_log_);
  Start();
}

Status EngineThread::Submit(GenerateRequest request, TokenSink* sink) {
  const auto prompt_tokens = static_cast<int64_t>(request.prompt->size());
  if (prompt_tokens >= info_.max_total_tokens) {
    return ContextExceeded("prompt", fmt::format("the prompt has {} tokens, the KV cache only {}",
                                                 prompt_tokens, info_.max_total_tokens));
  }
  auto stream = std::make_unique<Stream>(std::move(request), sink, info_.eos_token_ids,
                                         next_seed_.fetch_add(1), original_logprobs_);
  return Accept([this, stream = std::move(stream)]() mutable {
    engine_events::Queued(stream->stream, static_cast<int64_t>(stream->prompt->size()));
    scheduler_.Add(std::move(stream));
  });
}

// Idle, or paused without cells, means that the engine's thread has nothing left to do before the
// flush but the pause itself, so it is done before anything that comes later.
Status EngineThread::FlushCache() {
  const MutexLock lock(&mutex_);
  if (cells_are_held()) {
    return Error(StatusCode::kFailedPrecondition, "requests are running or waiting");
  }
  counters_.kv_cached.store(0);
  Post([this] { cache_.Flush(); });
  return OkStatus();
}

EngineLoad EngineThread::load() const {
  EngineLoad load = LoadWith(counters_.running.load());
  load.kv_cells_used = counters_.kv_used.load();
  load.kv_cells_cached = counters_.kv_cached.load();
  load.kv_cells_total = info_.max_total_tokens;
  load.prompt_tokens = counters_.prompt_tokens.load();
  load.cached_tokens = counters_.cached_tokens.load();
  load.generated_tokens = counters_.generated_tokens.load();
  load.retractions = counters_.retractions.load();
  load.retracted = counters_.retracted.load();
  load.steps = counters_.steps.load();
  const MutexLock lock(&update_mutex_);
  if (updates_ != nullptr) load.weight_updates_waiting = static_cast<int64_t>(updates_->queued());
  return load;
}

void EngineThread::Freeze(PauseMode mode) {
  if (mode == PauseMode::kRetract) scheduler_.RetractAll();
  if (mode != PauseMode::kAbort) return;
  while (const ScheduledRequest* any = scheduler_.Any()) {
    End(any->stream, /*keep=*/true, FinishReason::kAbort, OkStatus());
  }
}

bool EngineThread::RunStep() {
  const Step step = scheduler_.Next();
  for (const ScheduledRequest* request : step.too_long) {
    End(request->stream, /*keep=*/true, FinishReason::kError,
        Error(StatusCode::kResourceExhausted,
              fmt::format("the request has {} tokens, the KV cache holds only {}",
                          request->tokens.size(), cache_.cells())));
  }
  if (step.chunks.empty()) return !step.too_long.empty();
  BeginStep(step.chunks, [](const Chunk& chunk) { return chunk.request->stream; });
  masks_.Start(step);
  const bool recorded = events::On();
  TimePoint began;
  if (recorded) {
    RecordStarts(step);
    began = Clock::now();
  }
  const Status status = runner_->Run(step, cancel_step());
  masks_.Wait();
  EndStep(status);
  if (recorded) engine_events::Stepped(step.chunks.size(), Clock::now() - began);
  if (status.code() == StatusCode::kCancelled) {
    scheduler_.Undo(step);
    for (const Chunk& chunk : step.chunks) {
      End(chunk.request->stream, /*keep=*/true, FinishReason::kAbort, OkStatus());
    }
    return true;
  }
  if (!status.ok()) {
    for (const Chunk& chunk : step.chunks) {
      End(chunk.request->stream, /*keep=*/false, FinishReason::kError, status);
    }
    StepFailed(status);
    return true;
  }
  counters_.steps.fetch_add(1);
  scheduler_.Computed(step);
  int32_t row = 0;
  for (const Chunk& chunk : step.chunks) {
    Consume(chunk, row);
    row += chunk.rows;
  }
  return true;
}

void EngineThread::RecordStarts(const Step& step) const {
  for (const Chunk& chunk : step.chunks) {
    const ScheduledRequest& request = *chunk.request;
    const int32_t cached = std::max(request.cached_tokens, 0);
    if (request.retractions > 0 || chunk.begin != cached ||
        request.tokens.size() != request.prompt->size()) {
      continue;
    }
    engine_events::PrefillStarts(request.stream, static_cast<int64_t>(request.prompt->size()),
                                 cached);
  }
}

void EngineThread::Consume(const Chunk& chunk, int32_t first_row) {
  auto* stream = static_cast<Stream*>(chunk.request);
  const int32_t end = chunk.begin + chunk.count;
  for (int32_t i = 0; i < chunk.rows; ++i) {
    stream->TakePromptRow(end - chunk.rows + i, runner_->Logits(first_row + i), &scratch_);
  }
  if (!chunk.last) return;
  TokenDelta delta;
  if (stream->tokens.size() == stream->prompt->size()) engine_events::First(stream->stream);
  stream->TakeLastRow(runner_->Logits(first_row + chunk.rows - 1), &scratch_, &delta);
  counters_.generated_tokens.fetch_add(delta.tokens.size());
  TokenSink* const sink = stream->sink;
  if (delta.finish != FinishReason::kNone) {
    engine_events::Ended(stream->stream);
    scheduler_.Finish(stream->stream, /*keep=*/delta.finish != FinishReason::kError);
    CountEnded();
  }
  outbox_.Add(sink, std::move(delta));
}

void EngineThread::EndAborted(StreamId stream) {
  End(stream, /*keep=*/true, FinishReason::kAbort, OkStatus());
}

void EngineThread::End(StreamId stream, bool keep, FinishReason reason, const Status& error) {
  const std::unique_ptr<ScheduledRequest> request = scheduler_.Finish(stream, keep);
  if (request == nullptr) return;
  engine_events::Ended(stream);
  auto* ended = static_cast<Stream*>(request.get());
  TokenDelta delta;
  ended->End(reason, error, &delta);
  CountEnded();
  outbox_.Add(ended->sink, std::move(delta));
}

void EngineThread::EndAll(FinishReason reason, const Status& error) {
  while (const ScheduledRequest* any = scheduler_.Any())
    End(any->stream, /*keep=*/false, reason, error);
  Deliver();
}

// The counters come first: who sees a stream end finds its cells free and its place empty.
void EngineThread::Deliver() {
  Count();
  block_log_.Deliver(&kv_events_);
  ReleaseEnded();
  outbox_.Deliver();
}

void EngineThread::Count() {
  counters_.running.store(scheduler_.running());
  counters_.kv_used.store(cache_.used());
  counters_.kv_cached.store(cache_.cached());
  counters_.retractions.store(scheduler_.retractions());
  counters_.retracted.store(scheduler_.retracted());
  counters_.prompt_tokens.store(scheduler_.prompt_tokens());
  counters_.cached_tokens.store(scheduler_.cached_tokens());
}

}  // namespace portico::llama
