// Test helper: a scheduler whose steps are run on pretended cells.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine/llama/kv_memory_for_test.h"
#include "engine/llama/scheduler.h"

namespace portico::llama {

using Tokens = std::vector<TokenId>;

// A chunk of a step that has been run; its request may have ended.
struct Ran {
  StreamId stream;
  int32_t begin;
  int32_t count;
  int32_t rows;
};

// Runs the scheduler's steps on pretended cells. A request's next token is a function of its
// tokens.
class SchedulerTest : public testing::Test {
 protected:
  void Start(SchedulerOptions options, int64_t cells, int32_t kept = 64) {
    cache_ = std::make_unique<KvCache>(&memory_, cells, options.max_running, kept);
    scheduler_ = std::make_unique<Scheduler>(options, cache_.get());
  }

  StreamId Add(Tokens prompt, int32_t max_new_tokens, int32_t next_logprob = -1) {
    return AddShared(std::make_shared<const Tokens>(std::move(prompt)), max_new_tokens,
                     next_logprob);
  }
  StreamId AddShared(std::shared_ptr<const Tokens> prompt, int32_t max_new_tokens,
                     int32_t next_logprob = -1) {
    auto request = std::make_unique<ScheduledRequest>();
    request->stream = NextStreamId();
    request->prompt = std::move(prompt);
    request->max_new_tokens = max_new_tokens;
    request->next_logprob =
        next_logprob < 0 ? static_cast<int32_t>(request->prompt->size()) : next_logprob;
    const StreamId stream = request->stream;
    scheduler_->Add(std::move(request));
    return stream;
  }

  // None of NextToken()'s.
  static constexpr TokenId kWrongToken = 1000;
  static TokenId NextToken(const Tokens& tokens) {
    uint32_t hash = 17;
    for (const TokenId token : tokens) hash = hash * 31 + static_cast<uint32_t>(token);
    return static_cast<TokenId>(hash % 1000);
  }

  // A request's tokens, and those that are forced on it.
  static Tokens Known(const ScheduledRequest& request) {
    Tokens known = request.tokens;
    known.insert(known.end(), request.forced.begin(), request.forced.end());
    return known;
  }

  std::vector<Ran> RunStep() {
    const Step step = scheduler_->Next();
    std::vector<Ran> ran;
    for (const Chunk& chunk : step.chunks) {
      const Tokens known = Known(*chunk.request);
      const auto first = known.begin() + chunk.begin;
      memory_.Compute(chunk.request->branch.sequence, chunk.begin,
                      Tokens(first, first + chunk.count));
    }
    for (const Chunk& chunk : step.chunks) {
      ran.push_back({chunk.request->stream, chunk.begin, chunk.count, chunk.rows});
      ExpectOwnTokens(*chunk.request);
    }
    scheduler_->Computed(step);
    for (const Chunk& chunk : step.chunks) {
      ExpectOwnTokens(*chunk.request);
      ScheduledRequest* request = chunk.request;
      for (int32_t i = chunk.count - chunk.rows; i < chunk.count; ++i) {
        if (chunk.begin + i + 1 == request->next_logprob) ++request->next_logprob;
      }
      if (chunk.last) DrawTokens(chunk);
    }
    for (const ScheduledRequest* request : step.too_long) {
      too_long_.push_back(request->stream);
      Finish(request->stream);
    }
    EXPECT_EQ(memory_.used(), cache_->used() + cache_->cached());
    return ran;
  }

  // As the engine does.
  void DrawTokens(const Chunk& chunk) {
    ScheduledRequest* request = chunk.request;
    for (int32_t right = 0;; ++right) {
      request->tokens.push_back(NextToken(request->tokens));
      const auto drawn = static_cast<int32_t>(request->tokens.size() - request->prompt->size());
      const bool ends = drawn >= request->max_new_tokens;
      if (!ends && right < chunk.forced &&
          request->tokens.back() == request->forced[static_cast<size_t>(right)]) {
        continue;
      }
      right_ += right;
      wrong_ += chunk.forced - right;
      scheduler_->GiveBack(chunk, chunk.forced - right);
      if (ends) return Finish(request->stream);
      return Force(request, request->max_new_tokens - drawn - 1);
    }
  }

  // At most `left` tokens, of which each may be wrong.
  void Force(ScheduledRequest* request, int32_t left) {
    request->forced.clear();
    if (most_forced_ == 0) return;
    Tokens tokens = request->tokens;
    for (uint32_t n = random_() % (most_forced_ + 1); n > 0 && left > 0; --n, --left) {
      tokens.push_back(NextToken(tokens));
      request->forced.push_back(random_() % 6 == 0 ? kWrongToken : tokens.back());
    }
  }

  void Finish(StreamId stream) {
    std::unique_ptr<ScheduledRequest> request = scheduler_->Finish(stream, true);
    ASSERT_NE(request, nullptr);
    EXPECT_EQ(request->branch.sequence, -1);
    finished_[stream] = request->tokens;
  }

  void ExpectOwnTokens(const ScheduledRequest& request) {
    const Tokens known = Known(request);
    EXPECT_EQ(memory_.TokensOf(request.branch.sequence),
              Tokens(known.begin(), known.begin() + request.branch.length));
  }

  int RunAll(int most = 100000) {
    int steps = 0;
    while (scheduler_->running() + scheduler_->waiting() > 0 && steps < most) {
      RunStep();
      ++steps;
    }
    EXPECT_EQ(scheduler_->running() + scheduler_->waiting(), 0);
    EXPECT_EQ(cache_->used(), 0);
    return steps;
  }

  static Tokens Answer(Tokens tokens, int32_t count) {
    for (int32_t i = 0; i < count; ++i) tokens.push_back(NextToken(tokens));
    return tokens;
  }
  static int32_t CountOf(const std::vector<Ran>& step, StreamId stream) {
    for (const Ran& ran : step) {
      if (ran.stream == stream) return ran.count;
    }
    return 0;
  }

  FakeKvMemory memory_;
  std::unique_ptr<KvCache> cache_;
  std::unique_ptr<Scheduler> scheduler_;
  std::map<StreamId, Tokens> finished_;
  std::vector<StreamId> too_long_;
  uint32_t most_forced_ = 0;  // tokens that are forced on a request at once
  std::mt19937 random_;
  int64_t right_ = 0;
  int64_t wrong_ = 0;
};

inline Tokens Range(TokenId first, int32_t count) {
  Tokens tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

}  // namespace portico::llama
