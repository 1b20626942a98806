#include "engine/llama/generation/scheduler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/sanitized_for_test.h"
#include "engine/llama/kv/kv_memory_for_test.h"

namespace portico::llama {
namespace {

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

  static TokenId NextToken(const Tokens& tokens) {
    uint32_t hash = 17;
    for (const TokenId token : tokens) hash = hash * 31 + static_cast<uint32_t>(token);
    return static_cast<TokenId>(hash % 1000);
  }

  std::vector<Ran> RunStep() {
    const Step step = scheduler_->Next();
    std::vector<Ran> ran;
    for (const Chunk& chunk : step.chunks) {
      const auto first = chunk.request->tokens.begin() + chunk.begin;
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
      if (!chunk.last) continue;
      request->tokens.push_back(NextToken(request->tokens));
      const auto drawn = static_cast<int32_t>(request->tokens.size() - request->prompt->size());
      if (drawn >= request->max_new_tokens) Finish(request->stream);
    }
    for (const ScheduledRequest* request : step.too_long) {
      too_long_.push_back(request->stream);
      Finish(request->stream);
    }
    EXPECT_EQ(memory_.used(), cache_->used() + cache_->cached());
    return ran;
  }

  void Finish(StreamId stream) {
    std::unique_ptr<ScheduledRequest> request = scheduler_->Finish(stream, true);
    ASSERT_NE(request, nullptr);
    EXPECT_EQ(request->branch.sequence, -1);
    finished_[stream] = request->tokens;
  }

  void ExpectOwnTokens(const ScheduledRequest& request) {
    EXPECT_EQ(memory_.TokensOf(request.branch.sequence),
              Tokens(request.tokens.begin(), request.tokens.begin() + request.branch.length));
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
};

Tokens Range(TokenId first, int32_t count) {
  Tokens tokens;
  for (int32_t i = 0; i < count; ++i) tokens.push_back(first + i);
  return tokens;
}

TEST_F(SchedulerTest, PrefillsInChunksThenDecodesOneTokenAStep) {
  Start({4, 10, 8}, 100);
  const StreamId stream = Add(Range(0, 25), 3);
  for (const int32_t count : {10, 10, 5, 1, 1}) {
    const Step step = scheduler_->Next();
    ASSERT_EQ(step.chunks.size(), 1u);
    EXPECT_EQ(step.chunks[0].count, count);
    EXPECT_EQ(step.chunks[0].rows, count == 10 ? 0 : 1);
    memory_.Compute(step.chunks[0].request->branch.sequence, step.chunks[0].begin,
                    Tokens(step.chunks[0].request->tokens.begin() + step.chunks[0].begin,
                           step.chunks[0].request->tokens.begin() + step.chunks[0].begin + count));
    scheduler_->Computed(step);
    if (step.chunks[0].last) {
      step.chunks[0].request->tokens.push_back(NextToken(step.chunks[0].request->tokens));
    }
  }
  Finish(stream);
  EXPECT_EQ(finished_[stream], Answer(Range(0, 25), 3));
}

TEST_F(SchedulerTest, PromptsTakeTheirShareOfAStepWhileStreamsRun) {
  struct Case {
    int running, prompts, tokens;
  };
  Start({16, 40, 16}, 10000);
  TokenId next = 0;  // no two share a prefix
  for (const Case& c : {Case{1, 1, 20}, Case{1, 3, 30}, Case{2, 1, 13}, Case{7, 1, 10}}) {
    std::vector<StreamId> running, prompts;
    for (int i = 0; i < c.running; ++i) running.push_back(Add(Range(next += 1000, 4), 100));
    RunStep();
    for (int i = 0; i < c.prompts; ++i) prompts.push_back(Add(Range(next += 1000, 500), 1));
    for (int i = 0; i < 10; ++i) {
      const std::vector<Ran> step = RunStep();
      for (const StreamId stream : running) EXPECT_EQ(CountOf(step, stream), 1);
      int tokens = 0;
      for (const StreamId stream : prompts) tokens += CountOf(step, stream);
      EXPECT_EQ(tokens, c.tokens) << c.running << " running, " << c.prompts << " prompts";
    }
    RunAll();
  }
}

TEST_F(SchedulerTest, AShortPromptIsNotHeldUpByALongOneBeforeIt) {
  Start({8, 40, 16}, 2000);
  const StreamId longer = Add(Range(0, 1000), 1);
  const StreamId shorter = Add(Range(5000, 8), 1);
  const std::vector<Ran> step = RunStep();
  EXPECT_EQ(CountOf(step, longer), 30);
  EXPECT_EQ(CountOf(step, shorter), 8);
  RunAll();
}

TEST_F(SchedulerTest, NoMoreRunThanAllowedAndTheRestFollowInOrder) {
  Start({3, 100, 8}, 1000);
  std::vector<StreamId> streams;
  for (int i = 0; i < 10; ++i) streams.push_back(Add(Range(i * 100, 5), 4));
  RunStep();
  EXPECT_EQ(scheduler_->running(), 3);
  EXPECT_EQ(scheduler_->waiting(), 7);
  while (scheduler_->running() + scheduler_->waiting() > 0) {
    RunStep();
    EXPECT_LE(scheduler_->running(), 3);
  }
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(finished_[streams[static_cast<size_t>(i)]], Answer(Range(i * 100, 5), 4));
}

TEST_F(SchedulerTest, ChoicesOfOnePromptAreComputedOnce) {
  Start({16, 100, 32}, 10000);
  const auto prompt = std::make_shared<const Tokens>(Range(0, 250));
  for (int i = 0; i < 8; ++i) AddShared(prompt, 2);
  int64_t computed = 0;
  while (scheduler_->running() + scheduler_->waiting() > 0) {
    for (const Ran& chunk : RunStep()) computed += chunk.count;
  }
  EXPECT_EQ(computed, 250 + 7 + 8);  // once, the last token of the others, and one decode each
  EXPECT_EQ(scheduler_->cached_tokens(), 7u * 249);
  EXPECT_EQ(scheduler_->prompt_tokens(), 8u * 250);
}

TEST_F(SchedulerTest, ASharedSystemPromptIsComputedOnceThoughAllArriveTogether) {
  Start({32, 512, 64}, 100000);
  for (int i = 0; i < 16; ++i) {
    Tokens prompt = Range(0, 300);
    for (const TokenId token : Range(1000 + 50 * i, 40)) prompt.push_back(token);
    Add(prompt, 5);
  }
  int64_t computed = 0;
  while (scheduler_->running() + scheduler_->waiting() > 0) {
    for (const Ran& chunk : RunStep()) computed += chunk.count;
  }
  EXPECT_EQ(computed, 300 + 16 * 40 + 16 * 4);
}

TEST_F(SchedulerTest, AShortCommonBeginningIsNotWaitedFor) {
  Start({8, 512, 16}, 10000);
  for (int i = 0; i < 4; ++i) {
    Tokens prompt = Range(0, 3);
    for (const TokenId token : Range(1000 + 50 * i, 40)) prompt.push_back(token);
    Add(prompt, 5);
  }
  EXPECT_EQ(RunStep().size(), 4u);
  RunAll();
}

TEST_F(SchedulerTest, AFullCacheRetractsTheYoungestWhichThenAnswersTheSame) {
  Start({8, 100, 16}, 100);
  std::vector<StreamId> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(Add(Range(i * 100, 10), 60));
  RunAll();
  EXPECT_GT(scheduler_->retractions(), 0u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(finished_[streams[static_cast<size_t>(i)]], Answer(Range(i * 100, 10), 60));
  }
  EXPECT_TRUE(too_long_.empty());
}

TEST_F(SchedulerTest, RetractedRequestsAreCountedUntilTheyRunAgainOrEnd) {
  Start({8, 100, 16}, 1000);
  const StreamId first = Add(Range(0, 10), 60);
  Add(Range(100, 10), 60);
  RunStep();
  EXPECT_EQ(scheduler_->retracted(), 0);
  scheduler_->RetractAll();
  EXPECT_EQ(scheduler_->retracted(), 2);
  EXPECT_EQ(scheduler_->Finish(first, true)->retractions, 1);
  EXPECT_EQ(scheduler_->retracted(), 1);
  RunStep();
  EXPECT_EQ(scheduler_->retracted(), 0);
}

TEST_F(SchedulerTest, TheOldestIsNeverRetracted) {
  Start({8, 100, 16}, 80);
  const StreamId oldest = Add(Range(0, 10), 65);
  for (int i = 1; i < 4; ++i) Add(Range(i * 100, 10), 60);
  int steps = 0;
  for (; finished_.count(oldest) == 0; ++steps) EXPECT_GT(CountOf(RunStep(), oldest), 0);
  EXPECT_EQ(steps, 65);
  RunAll();
}

TEST_F(SchedulerTest, ARequestThatDoesNotFitAloneIsNamed) {
  Start({8, 100, 16}, 50);
  const StreamId growing = Add(Range(0, 40), 30);
  const StreamId prompt = Add(Range(1000, 60), 1);
  const StreamId fine = Add(Range(2000, 20), 5);
  RunAll();
  EXPECT_EQ(too_long_, (std::vector<StreamId>{growing, prompt}));
  EXPECT_EQ(finished_[fine], Answer(Range(2000, 20), 5));
}

TEST_F(SchedulerTest, PromptLogprobsGetTheirRowsInBoundedSteps) {
  Start({4, 100, 20}, 1000);
  Add(Range(0, 90), 1, 41);
  std::vector<int32_t> rows;
  while (scheduler_->running() + scheduler_->waiting() > 0) {
    for (const Ran& chunk : RunStep()) rows.push_back(chunk.rows);
  }
  EXPECT_EQ(rows, (std::vector<int32_t>{20, 20, 10}));  // positions 40 to 89
}

TEST_F(SchedulerTest, PromptLogprobsAreComputedAnewFromTheFirstWanted) {
  Start({4, 100, 64}, 1000);
  Add(Range(0, 30), 1);
  RunAll();
  Add(Range(0, 30), 1, 11);
  const std::vector<Ran> step = RunStep();
  ASSERT_EQ(step.size(), 1u);
  EXPECT_EQ(step[0].begin, 10);
  EXPECT_EQ(step[0].rows, 20);
  EXPECT_EQ(memory_.used(), 30);  // the second copy is gone again
}

TEST_F(SchedulerTest, RequestsCanBeTakenOutInEveryState) {
  Start({2, 10, 8}, 300);
  const StreamId running = Add(Range(0, 5), 50);
  RunStep();
  RunStep();
  const StreamId prefilling = Add(Range(100, 60), 50);
  const StreamId waiting = Add(Range(200, 5), 50);
  RunStep();
  EXPECT_EQ(scheduler_->running(), 2);
  EXPECT_EQ(scheduler_->waiting(), 1);
  Finish(waiting);
  Finish(prefilling);
  Finish(running);
  EXPECT_EQ(scheduler_->Finish(running, true), nullptr);
  EXPECT_EQ(scheduler_->Any(), nullptr);
  EXPECT_EQ(cache_->used(), 0);
  EXPECT_EQ(memory_.used(), cache_->cached());
}

// Everything at once in little memory: what is left at the end answers as it should, and no cell is
// lost.
TEST_F(SchedulerTest, HoldsItsInvariantsUnderRandomUse) {
  for (uint32_t seed = 0; seed < (kSanitized ? 2u : 20u); ++seed) {
    std::mt19937 random(seed);
    memory_ = {};
    finished_.clear();
    too_long_.clear();
    Start({6, 16, 10}, 120, seed % 4 != 3 ? 6 : 0);
    std::map<StreamId, std::pair<Tokens, int32_t>> asked;
    std::vector<StreamId> aborted;
    for (int round = 0; round < 1000; ++round) {
      if (random() % 3 == 0 && scheduler_->waiting() < 20) {
        Tokens prompt(1 + random() % 50);
        for (TokenId& token : prompt) token = static_cast<TokenId>(random() % 2);
        const auto count = static_cast<int32_t>(1 + random() % 60);
        const int32_t logprob =
            random() % 4 == 0 ? 1 + static_cast<int32_t>(random() % prompt.size()) : -1;
        asked[Add(prompt, count, logprob)] = {prompt, count};
      }
      if (random() % 12 == 0 && !asked.empty()) {
        const auto it = std::next(asked.begin(), static_cast<ptrdiff_t>(random() % asked.size()));
        if (scheduler_->Finish(it->first, random() % 2 == 0) != nullptr) asked.erase(it);
      }
      RunStep();
      ASSERT_LE(memory_.used(), 120);
    }
    RunAll();
    EXPECT_TRUE(too_long_.empty());
    for (const auto& [stream, question] : asked) {
      ASSERT_EQ(finished_[stream], Answer(question.first, question.second)) << "seed " << seed;
    }
    cache_->Flush();
    EXPECT_EQ(memory_.used(), 0);
  }
}

TEST_F(SchedulerTest, ACancelledStepLeavesWhatWasComputedBefore) {
  SchedulerOptions options;
  options.prefill_tokens = 4;
  Start(options, 100);
  const StreamId stream = Add({1, 2, 3, 4, 5, 6, 7, 8, 9}, 3);
  RunStep();
  const Step step = scheduler_->Next();
  ASSERT_EQ(step.chunks.size(), 1u);
  EXPECT_EQ(step.chunks[0].begin, 4);
  EXPECT_EQ(cache_->used(), 8);
  scheduler_->Undo(step);
  EXPECT_EQ(cache_->used(), 4);
  Finish(stream);
  EXPECT_EQ(cache_->used(), 0);
  EXPECT_EQ(cache_->cached(), 4);
  EXPECT_EQ(memory_.used(), 4);
}

}  // namespace
}  // namespace portico::llama
