#include "engine/llama/pooling/pooling_engine.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/clock.h"
#include "fmt/format.h"

namespace portico::llama {

PoolingEngine::PoolingEngine(std::unique_ptr<LlamaModel> model, std::unique_ptr<PoolingLanes> lanes,
                             EngineInfo info, const PoolingSchedulerOptions& scheduling,
                             std::string description)
    : StepEngine(std::move(info), std::move(description)),
      model_(std::move(model)),
      pooling_(*model_->pooling()),
      scheduler_(scheduling),
      awaited_(lanes->size()),
      lanes_(std::move(lanes)) {
  lanes_->set_on_end([this] { PostAtOnce([this] { TakeEnded(); }); });
  Start();
}

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
  return Accept([this, texts = std::move(texts)]() mutable {
    nothing_fits_ = false;
    scheduler_.Add(std::move(texts));
  });
}

EngineLoad PoolingEngine::load() const {
  EngineLoad load = LoadWith(running_.load());
  load.prompt_tokens = prompt_tokens_.load();
  load.steps = batches_.load();
  return load;
}

void PoolingEngine::Freeze(PauseMode mode) {
  if (mode == PauseMode::kAbort) EndAll(FinishReason::kAbort, OkStatus());
  lanes_->Wait();
  TakeEnded();
  Deliver();
  if (mode == PauseMode::kInPlace) return;
  scheduler_.Restart();
  lanes_->Clear();
}

bool PoolingEngine::idle() const {
  return nothing_fits_ || scheduler_.Any() == nullptr || lanes_->room() == 0;
}

// Begins batches on the lanes that are free.
bool PoolingEngine::RunStep() {
  gathering_ = {};
  if (std::exchange(batches_ended_, false)) {
    ExpectAnswers();
    if (gathering_.commands > 0) return false;
  }
  while (const size_t batches = scheduler_.Batches(lanes_->room())) {
    Batch batch = scheduler_.Next(batches, lanes_->most_tokens());
    nothing_fits_ = batch.pieces.empty();
    if (nothing_fits_) break;
    Begin(std::move(batch), batches - 1);
  }
  return true;
}

void PoolingEngine::Begin(Batch batch, size_t more) {
  const size_t lane = lanes_->next();
  for (const Piece& piece : batch.pieces) {
    Text* text = AsText(piece.text);
    text->lane = lane;
    if (text->of->texts_in_batches++ == 0) running_.fetch_add(1);
  }
  awaited_[lane] = batch.pieces.size();
  lanes_->Begin(std::move(batch), more);
}

// Clients that have their answer send the next text at once, or do not. Whoever is first would be computed alone, at a
// price a token that is several times that of a batch, while the others wait for it: the next batch gives them a small
// part of the last one's time to come, unless what waits already fills the lanes that are free.
void PoolingEngine::ExpectAnswers() {
  constexpr int kPart = 16;
  constexpr std::chrono::milliseconds kMost{2};
  const size_t answered = std::exchange(ended_requests_, 0);
  if (scheduler_.Fills(lanes_->room())) return;
  gathering_ = {answered, Clock::now() + std::min<Duration>(ended_took_ / kPart, kMost)};
}

// Pools the batches that have ended.
void PoolingEngine::TakeEnded() {
  const std::vector<PoolingLanes::Ended> all = lanes_->TakeEnded();
  if (all.empty()) return;
  Status worst;
  for (const PoolingLanes::Ended& ended : all) {
    EndBatch(ended, FinishReason::kAbort, OkStatus());
    if (worst.ok() || worst.code() == StatusCode::kCancelled) worst = ended.status;
  }
  nothing_fits_ = false;
  batches_ended_ = true;
  ended_took_ = all.back().took;
  EndStep(worst);
  if (worst.ok()) return;
  scheduler_.Restart();
  if (worst.code() != StatusCode::kCancelled) StepFailed(worst);
}

// `reason` and `error`: of the texts, if the batch was cancelled.
void PoolingEngine::EndBatch(const PoolingLanes::Ended& ended, FinishReason reason,
                             const Status& error) {
  const Batch& batch = ended.batch;
  batches_.fetch_add(1);
  for (const Piece& piece : batch.pieces) {
    if (--AsText(piece.text)->of->texts_in_batches == 0) running_.fetch_sub(1);
  }
  if (!ended.status.ok()) {
    const bool cancelled = ended.status.code() == StatusCode::kCancelled;
    for (const Piece& piece : batch.pieces) {
      End(piece.text->request.stream, cancelled ? reason : FinishReason::kError,
          cancelled ? error : ended.status);
    }
    return;
  }
  int32_t first = 0;
  for (const Piece& piece : batch.pieces) {
    Pool(piece, lanes_->runner(ended.lane), first);
    first += piece.count;
  }
  prompt_tokens_.fetch_add(static_cast<uint64_t>(batch.tokens));
  scheduler_.Computed(batch);
  for (const Piece& piece : batch.pieces) {
    Text* text = AsText(piece.text);
    if (text->aborted) {
      End(text->request.stream, FinishReason::kAbort, OkStatus());
    } else if (text->left() == 0) {
      Answer(text);
    }
  }
}

// Takes what the piece's hidden states, from `first` on, add to its text's vector.
void PoolingEngine::Pool(const Piece& piece, const PoolingRunner& runner, int32_t first) {
  Text* text = AsText(piece.text);
  const int32_t begin = text->computed;
  const auto take = [&](int32_t token) {
    if (token < begin || token >= begin + piece.count) return;
    const std::span<const float> state = runner.State(first + token - begin);
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
      if (begin == 0) text->pooled.assign(runner.state_size(), 0.0f);
      for (int32_t i = 0; i < piece.count; ++i) {
        const std::span<const float> state = runner.State(first + i);
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

void PoolingEngine::EndAborted(StreamId stream) {
  ScheduledText* in_batch = scheduler_.InBatch(stream);
  if (in_batch == nullptr) return End(stream, FinishReason::kAbort, OkStatus());
  Text* text = AsText(in_batch);
  if (std::exchange(text->aborted, true)) return;
  if (--awaited_[text->lane] == 0) lanes_->Cancel(text->lane);
}

void PoolingEngine::End(StreamId stream, FinishReason reason, const Status& error) {
  PoolingOutput output;
  output.finish = reason;
  output.error = error;
  Finish(stream, std::move(output));
}

void PoolingEngine::EndAll(FinishReason reason, const Status& error) {
  lanes_->CancelAll();
  lanes_->Wait();
  for (const PoolingLanes::Ended& ended : lanes_->TakeEnded()) EndBatch(ended, reason, error);
  while (const ScheduledText* any = scheduler_.Any()) End(any->request.stream, reason, error);
  Deliver();
}

void PoolingEngine::Finish(StreamId stream, PoolingOutput output) {
  const std::unique_ptr<ScheduledText> text = scheduler_.Finish(stream);
  if (text == nullptr) return;
  output.stream = stream;
  output.prompt_tokens = text->size();
  Request& request = *AsText(text.get())->of;
  if (--request.texts_left == 0) {
    CountEnded();
    ++ended_requests_;
  }
  outbox_.Add(request.sink, std::move(output));
}

// The counter comes first: who sees a request end finds its place empty.
void PoolingEngine::Deliver() {
  ReleaseEnded();
  outbox_.Deliver();
}

}  // namespace portico::llama
