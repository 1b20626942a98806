#include "engine/llama/pooling_engine.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "base/clock.h"
#include "fmt/format.h"

namespace portico::llama {

PoolingEngine::PoolingEngine(std::unique_ptr<LlamaModel> model,
                             std::unique_ptr<PoolingRunners> runners, EngineInfo info,
                             const PoolingSchedulerOptions& scheduling, std::string description)
    : StepEngine(std::move(info), std::move(description)),
      model_(std::move(model)),
      runners_(std::move(runners)),
      pooling_(*model_->pooling()),
      scheduler_(scheduling) {
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
  return Accept([this, texts = std::move(texts)]() mutable { scheduler_.Add(std::move(texts)); });
}

EngineLoad PoolingEngine::load() const {
  EngineLoad load = LoadWith(running_.load());
  load.prompt_tokens = prompt_tokens_.load();
  load.steps = steps_.load();
  return load;
}

void PoolingEngine::Freeze(PauseMode mode) {
  if (mode == PauseMode::kInPlace) return;
  if (mode == PauseMode::kAbort) EndAll(FinishReason::kAbort, OkStatus());
  scheduler_.Restart();
  runners_->Clear();
}

bool PoolingEngine::RunStep() {
  const std::vector<Batch> batches = scheduler_.Next();
  if (batches.empty()) return false;
  std::vector<Piece> pieces;
  for (const Batch& batch : batches) {
    pieces.insert(pieces.end(), batch.pieces.begin(), batch.pieces.end());
  }
  CountRunning(pieces);
  const TimePoint began = Clock::now();
  ended_requests_ = 0;
  BeginStep(pieces, [](const Piece& piece) { return piece.text->request.stream; });
  const std::vector<Status> statuses = runners_->Run(batches, cancel_step());
  Status worst;
  for (const Status& status : statuses) {
    if (worst.ok() || worst.code() == StatusCode::kCancelled) worst = status;
  }
  EndStep(worst);
  steps_.fetch_add(1);
  for (size_t i = 0; i < batches.size(); ++i) EndBatch(batches[i], (*runners_)[i], statuses[i]);
  if (!worst.ok()) {
    scheduler_.Restart();
    if (worst.code() != StatusCode::kCancelled) StepFailed(worst);
  }
  ExpectAnswersToStep(began);
  return true;
}

// Clients that have their answer send the next text at once, or do not. Whoever is first would be computed alone, at a
// price a token that is several times that of a batch, while the others wait for it: the next step gives them a small
// part of the last one's time to come, unless what waits already fills it.
void PoolingEngine::ExpectAnswersToStep(TimePoint began) {
  constexpr int kPart = 16;
  constexpr std::chrono::milliseconds kMost{2};
  gathering_ = {};
  if (scheduler_.fills_step()) return;
  const TimePoint now = Clock::now();
  gathering_ = {ended_requests_, now + std::min<Duration>((now - began) / kPart, kMost)};
}

void PoolingEngine::EndBatch(const Batch& batch, const PoolingRunner& runner,
                             const Status& status) {
  const bool cancelled = status.code() == StatusCode::kCancelled;
  if (!status.ok()) {
    for (const Piece& piece : batch.pieces) {
      End(piece.text->request.stream, cancelled ? FinishReason::kAbort : FinishReason::kError,
          cancelled ? OkStatus() : status);
    }
    return;
  }
  int32_t first = 0;
  for (const Piece& piece : batch.pieces) {
    Pool(piece, runner, first);
    first += piece.count;
  }
  prompt_tokens_.fetch_add(static_cast<uint64_t>(batch.tokens));
  scheduler_.Computed(batch);
  for (const Piece& piece : batch.pieces) {
    if (piece.text->left() == 0) Answer(AsText(piece.text));
  }
}

void PoolingEngine::CountRunning(const std::vector<Piece>& pieces) {
  const uint64_t step = steps_.load() + 1;
  int64_t running = 0;
  for (const Piece& piece : pieces) {
    Request& request = *AsText(piece.text)->of;
    running += request.step != step ? 1 : 0;
    request.step = step;
  }
  running_.store(running);
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

void PoolingEngine::EndAborted(StreamId stream) { End(stream, FinishReason::kAbort, OkStatus()); }

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
  if (--request.texts_left == 0) {
    CountEnded();
    ++ended_requests_;
  }
  outbox_.Add(request.sink, std::move(output));
}

// The counters come first: who sees a request end finds its place empty.
void PoolingEngine::Deliver() {
  running_.store(0);
  ReleaseEnded();
  outbox_.Deliver();
}

}  // namespace portico::llama
