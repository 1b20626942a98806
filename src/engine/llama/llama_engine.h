// The engine that computes here: libllama does the arithmetic; scheduling, prefix cache and
// sampling are Portico's (generation/scheduler.h, kv/kv_cache.h, ../sampler/sampler.h).
//
// One thread runs steps: take what was submitted and aborted, let the scheduler plan a batch,
// compute it, sample, deliver each sink its deltas at once. It sleeps while there is nothing to do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "engine/engine.h"
#include "engine/llama/model/model.h"

namespace portico::llama {

// libllama knows at most this many sequences in one cache: running requests and cached branches
// together.
inline constexpr int32_t kMaxSequences = 256;
// A running request may hold back one cached branch beside itself (kv/kv_cache.h).
inline constexpr int32_t kMaxRunningRequests = kMaxSequences / 2;

struct LlamaEngineOptions {
  int32_t max_running_requests = 32;  // 1 to kMaxRunningRequests
  int32_t max_queued_requests = 1024;
  int32_t chunked_prefill_size = 512;  // prompt tokens a step; the prompts' share while streams run
  int64_t max_total_tokens = 0;  // KV cells; 0: chosen from the context length and the free memory
  int32_t threads = 0;           // 0: as many as `cores`; one for a small model
  int32_t cores = 0;             // for an engine without a number of threads; 0: all
  int64_t mapped_bytes = 0;      // weights of other models, which the KV cache must not push out
  bool enable_prefix_cache = true;
  bool return_original_logprob = false;  // of the answer's tokens: before the temperature
  std::vector<TokenId> end_token_ids;    // that end answers beside the model's own: the tokenizer's
};

// What every engine says of such a model; each adds what it is for.
EngineInfo InfoOf(const ModelInfo& model, const LlamaEngineOptions& options);

class LlamaEngine : public Engine {
 public:
  // One line for the start: KV cells, bytes, type and why so many, running requests, threads.
  virtual const std::string& description() const = 0;
};

// Errors: INVALID_ARGUMENT (an option out of range, or that the model cannot have), RESOURCE_EXHAUSTED (no memory for the KV
// cache), INTERNAL (libllama refused the context).
StatusOr<std::unique_ptr<LlamaEngine>> NewLlamaEngine(std::unique_ptr<LlamaModel> model,
                                                      const LlamaEngineOptions& options);

}  // namespace portico::llama
