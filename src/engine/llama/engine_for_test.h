// Test helpers: a sink that collects the answers of many streams and lets the test wait for them,
// and an engine on a model.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "engine/engine.h"
#include "engine/llama/import/temp_folder_for_test.h"
#include "engine/llama/llama_engine.h"
#include "engine/llama/model/model.h"

namespace portico::llama {

// How a stream has ended.
struct StreamEnd {
  StreamId stream = 0;
  FinishReason finish = FinishReason::kNone;
  TokenId matched_token = -1;
  TokenUsage usage;
  Status error;
};

inline StreamEnd EndOf(const TokenDelta& delta) {
  return {delta.stream, delta.finish, delta.matched_token, delta.usage, delta.error};
}

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<PositionLogprobs> logprobs;
  std::vector<PositionLogprobs> prompt_logprobs;
  StreamEnd last;  // of the terminal delta
  int32_t terminals = 0;
  int32_t after_end = 0;  // deltas that came too late
};

class CollectingSink : public TokenSink {
 public:
  void Deliver(std::vector<TokenDelta> batch) override {
    const MutexLock lock(&mutex_);
    ++deliveries_;
    for (TokenDelta& delta : batch) Take(std::move(delta));
    changed_.NotifyAll();
    while (hold_at_ != 0 && answers_[held_].tokens.size() >= hold_at_) changed_.Wait(&mutex_);
  }

  // The delivery that brings a stream to so many tokens will keep its engine's thread until
  // Release(), so that the stream is still running when it is paused or aborted.
  void HoldAt(StreamId stream, size_t tokens) {
    const MutexLock lock(&mutex_);
    held_ = stream;
    hold_at_ = tokens;
  }
  void Release() {
    const MutexLock lock(&mutex_);
    hold_at_ = 0;
    changed_.NotifyAll();
  }

  // Waits until `count` streams have ended.
  void WaitForEnds(size_t count) {
    const MutexLock lock(&mutex_);
    const TimePoint deadline = Clock::now() + kPatience;
    while (ended_ < count && changed_.WaitUntil(&mutex_, deadline)) {
    }
    ASSERT_GE(ended_, count) << "streams have ended";
  }

  // Waits until a stream has at least `count` tokens or has ended.
  void WaitForTokens(StreamId stream, size_t count) {
    const MutexLock lock(&mutex_);
    const TimePoint deadline = Clock::now() + kPatience;
    const Answer& answer = answers_[stream];
    const auto came = [&] { return answer.terminals > 0 || answer.tokens.size() >= count; };
    while (!came() && changed_.WaitUntil(&mutex_, deadline)) {
    }
    ASSERT_TRUE(came());
  }

  Answer of(StreamId stream) {
    const MutexLock lock(&mutex_);
    return answers_[stream];
  }
  size_t deliveries() {
    const MutexLock lock(&mutex_);
    return deliveries_;
  }

 private:
  static constexpr Duration kPatience = std::chrono::minutes(2);

  void Take(TokenDelta delta) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    Answer& answer = answers_[delta.stream];
    if (answer.terminals > 0) ++answer.after_end;
    answer.tokens.insert(answer.tokens.end(), delta.tokens.begin(), delta.tokens.end());
    for (auto& entry : delta.logprobs) answer.logprobs.push_back(std::move(entry));
    for (auto& entry : delta.prompt_logprobs) answer.prompt_logprobs.push_back(std::move(entry));
    if (delta.finish == FinishReason::kNone) return;
    ++answer.terminals;
    ++ended_;
    answer.last = EndOf(delta);
  }

  Mutex mutex_;
  CondVar changed_;
  std::map<StreamId, Answer> answers_ ABSL_GUARDED_BY(mutex_);
  StreamId held_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t hold_at_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t deliveries_ ABSL_GUARDED_BY(mutex_) = 0;
};

inline GenerateRequest Greedy(std::vector<TokenId> prompt, int32_t max_new_tokens) {
  GenerateRequest request;
  request.stream = NextStreamId();
  request.prompt = std::make_shared<const std::vector<TokenId>>(std::move(prompt));
  OwnSampling(&request).temperature = 0;
  request.max_new_tokens = max_new_tokens;
  OwnSampling(&request).ignore_eos = true;
  return request;
}

// An engine on a model, with an import cache of its own.
class TestEngine {
 public:
  void LoadModel(const std::string& folder, const std::string& dtype,
                 const std::string& quantization = "") {
    ModelOptions options;
    options.path = folder;
    options.dtype = dtype;
    options.quantization = quantization;
    auto model = LlamaModel::Load(options, nullptr);
    ASSERT_TRUE(model.ok()) << MessageOf(model.status());
    model_ = *std::move(model);
  }

  void Start(const LlamaEngineOptions& options) {
    auto engine = NewLlamaEngine(std::move(model_), options);
    ASSERT_TRUE(engine.ok()) << MessageOf(engine.status());
    engine_ = *std::move(engine);
  }

  Answer Ask(GenerateRequest request) {
    const StreamId stream = request.stream;
    CollectingSink sink;
    const Status status = engine_->Submit(std::move(request), &sink);
    EXPECT_TRUE(status.ok()) << MessageOf(status);
    if (!status.ok()) return {};
    sink.WaitForEnds(1);
    return sink.of(stream);
  }

  void ExpectIdle() {
    const EngineLoad load = engine_->load();
    EXPECT_EQ(load.running, 0);
    EXPECT_EQ(load.waiting, 0);
    EXPECT_EQ(load.kv_cells_used, 0);
    EXPECT_TRUE(load.healthy);
  }

  TempFolder cache_{"PORTICO_CACHE_DIR"};
  std::unique_ptr<LlamaModel> model_;  // until Start()
  std::unique_ptr<LlamaEngine> engine_;
};

}  // namespace portico::llama
