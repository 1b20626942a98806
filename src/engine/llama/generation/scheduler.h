// Who computes what in the next step. Pure policy: no model, no thread, no clock.
//
//   Step step = scheduler.Next();   // admits, plans, and makes room for it in the cache
//   … compute step.chunks …
//   scheduler.Computed(step);       // the chunks' keys and values are there and can be shared
//   request->tokens.push_back(…)    // for each chunk that ends its request's tokens: one more, or
//   Finish()
//
// The rules:
// - A request is its tokens, prompt and answer alike; `computed` of them have cells. One that lacks
//   a single token is decoding, one that lacks more is prefilling, and both are chunks of one
//   batch.
// - Decoding requests all take part in every step. Prompts share prefill_tokens, oldest first. While
//   requests decode it is only the prompts' share of the running requests, at least a quarter: one
//   long prompt slows many streams by little, many prompts are not held up by one stream. A prompt
//   that needs more than there is leaves a quarter to those behind it.
// - Waiting requests are admitted in order while their prompt and some room to grow fit. One that
//   could soon share much of a prompt that is being computed right now is passed over until it can.
// - When the cache is full, unused prefixes are evicted; when there are none, the youngest running
//   request is retracted: it goes back to the front of the queue with the tokens it has, which are
//   computed again later.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/llama/kv/kv_cache.h"
#include "message/generate.h"

namespace portico::llama {

// One stream as the scheduler sees it; the engine derives its own from it.
struct ScheduledRequest {
  virtual ~ScheduledRequest() = default;

  // Set by the engine before Add().
  StreamId stream = 0;
  std::shared_ptr<const std::vector<TokenId>> prompt;
  int32_t max_new_tokens = 0;
  // The next prompt position whose log-probability is wanted, or the prompt's size for none; at
  // least 1. The engine moves it on. Rows of logits from the position before it on are asked for.
  int32_t next_logprob = 0;

  // While running: prompt and answer so far. Kept over a retraction.
  std::vector<TokenId> tokens;
  KvBranch branch;
  int32_t cached_tokens = -1;  // of the prompt, found at the first admission; -1 before
  uint64_t admission = 0;      // greater: later
  int32_t retractions = 0;     // how often it was sent back to the queue

  std::span<const TokenId> known() const { return tokens.empty() ? *prompt : tokens; }
  int32_t computed() const { return branch.length; }
  int32_t pending() const { return static_cast<int32_t>(tokens.size()) - branch.length; }
  bool decoding() const { return pending() == 1 && tokens.size() > prompt->size(); }
};

// Tokens [begin, begin + count) of a request. The last `rows` of them give logits.
struct Chunk {
  ScheduledRequest* request = nullptr;
  int32_t begin = 0;
  int32_t count = 0;
  int32_t rows = 0;
  bool last = false;  // the request's last token is in it
};

struct Step {
  std::vector<Chunk> chunks;
  // Requests that cannot go on: not even alone do they fit into the cache. The caller ends them.
  std::vector<ScheduledRequest*> too_long;
  bool empty() const { return chunks.empty() && too_long.empty(); }
};

struct SchedulerOptions {
  int32_t max_running = 32;
  int32_t prefill_tokens = 512;  // a step
  int32_t max_rows = 64;         // rows of logits a step; more than max_running
};

class Scheduler {
 public:
  Scheduler(const SchedulerOptions& options, KvCache* cache);

  void Add(std::unique_ptr<ScheduledRequest> request);

  // Admits and plans. The cells of the chunks are taken from the cache.
  Step Next();

  // The chunks have been computed.
  void Computed(const Step& step);
  // Or they have not: their cells are given back. Nothing else may have happened since Next().
  void Undo(const Step& step);

  // Takes a request out, waiting or running. With `keep` its tokens stay in the cache as an
  // evictable prefix. Null if it is unknown.
  std::unique_ptr<ScheduledRequest> Finish(StreamId stream, bool keep);

  // Sends all running requests back to the front of the queue, in their order. Their cells are free
  // or evictable.
  void RetractAll();

  // Any request, or null if there is none.
  const ScheduledRequest* Any() const;

  int32_t running() const { return static_cast<int32_t>(running_.size()); }
  int32_t waiting() const { return static_cast<int32_t>(waiting_.size()); }
  uint64_t retractions() const { return retractions_; }
  // Of those that wait: had been running.
  int32_t retracted() const { return retracted_; }
  // Of the prompts admitted so far, each counted once.
  uint64_t prompt_tokens() const { return prompt_tokens_; }
  uint64_t cached_tokens() const { return cached_tokens_; }

 private:
  void Admit();
  bool Fits(const ScheduledRequest& request, const KvCache::Lookup& found) const;
  bool WorthWaiting(const ScheduledRequest& request, const KvCache::Lookup& found) const;
  void Start(std::unique_ptr<ScheduledRequest> request);
  void PlanDecodes(Step* step);
  void PlanPrefills(Step* step);
  void Take(ScheduledRequest* request, int32_t count, Step* step);
  bool Retract(Step* step);
  void RetractYoungest();

  SchedulerOptions options_;
  KvCache* cache_;
  std::deque<std::unique_ptr<ScheduledRequest>> waiting_;
  std::vector<std::unique_ptr<ScheduledRequest>> running_;  // by admission
  uint64_t admissions_ = 0;
  uint64_t retractions_ = 0;
  int32_t retracted_ = 0;
  uint64_t prompt_tokens_ = 0;
  uint64_t cached_tokens_ = 0;
};

}  // namespace portico::llama
