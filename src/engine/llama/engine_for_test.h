// Test helper: a sink that collects the answers of many streams and lets the test wait for them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace portico::llama {

struct Answer {
  std::vector<TokenId> tokens;
  std::vector<PositionLogprobs> logprobs;
  std::vector<PositionLogprobs> prompt_logprobs;
  TokenDelta last;  // the terminal delta
  int32_t terminals = 0;
  int32_t after_end = 0;  // deltas that came too late
};

class CollectingSink : public TokenSink {
 public:
  void Deliver(std::vector<TokenDelta> batch) override {
    std::lock_guard lock(mutex_);
    ++deliveries_;
    for (TokenDelta& delta : batch) Take(std::move(delta));
    changed_.notify_all();
  }

  // Waits until `count` streams have ended.
  void WaitForEnds(size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::minutes(2), [&] { return ended_ >= count; }))
        << ended_ << " of " << count << " streams have ended";
  }

  // Waits until a stream has at least `count` tokens or has ended.
  void WaitForTokens(StreamId stream, size_t count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::minutes(2), [&] {
      const Answer& answer = answers_[stream];
      return answer.terminals > 0 || answer.tokens.size() >= count;
    }));
  }

  Answer of(StreamId stream) {
    std::lock_guard lock(mutex_);
    return answers_[stream];
  }
  size_t deliveries() {
    std::lock_guard lock(mutex_);
    return deliveries_;
  }

 private:
  void Take(TokenDelta delta) {
    Answer& answer = answers_[delta.stream];
    if (answer.terminals > 0) ++answer.after_end;
    answer.tokens.insert(answer.tokens.end(), delta.tokens.begin(), delta.tokens.end());
    for (auto& entry : delta.logprobs) answer.logprobs.push_back(std::move(entry));
    for (auto& entry : delta.prompt_logprobs) answer.prompt_logprobs.push_back(std::move(entry));
    if (delta.finish == FinishReason::kNone) return;
    ++answer.terminals;
    ++ended_;
    answer.last = std::move(delta);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<StreamId, Answer> answers_;
  size_t ended_ = 0;
  size_t deliveries_ = 0;
};

inline GenerateRequest Greedy(std::vector<TokenId> prompt, int32_t max_new_tokens) {
  GenerateRequest request;
  request.stream = NextStreamId();
  request.prompt = std::make_shared<const std::vector<TokenId>>(std::move(prompt));
  request.sampling.temperature = 0;
  request.sampling.max_new_tokens = max_new_tokens;
  request.sampling.ignore_eos = true;
  return request;
}

}  // namespace portico::llama
