// An engine without a model: it answers with the prompt's own tokens, at a given pace. Tests and
// benchmarks of everything above the Engine interface run on it.
//
// Rules. The answer is the prompt without its special tokens, repeated, exactly max_new_tokens long
// (a prompt of special tokens only: its last token, repeated). Step k of a stream is due at
// admission + ttft + k * itl and carries tokens_per_step tokens; a due time in the future is
// rounded up to the next millisecond, so that thousands of streams share their wake-ups. Without an
// itl the tokens come as fast as they can, at most kMockTokensPerDelivery a delta, all streams in
// turn. A paused stream's due times move by the pause; a retracted one waits for its ttft again and
// goes on from there. The model's end tokens do not end an answer; stop_token_ids do (past min_new_tokens).
// Log-probabilities are made up, but always the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/mock/mock_faults.h"

namespace portico {

inline constexpr int32_t kMockTokensPerDelivery = 64;
// Answer length where a request names none: the context would be too much of the same.
inline constexpr int32_t kMockDefaultTokens = 128;

// Of an engine whose steps take a real one's time (simulated_engine.h).
struct MockSimulation {
  int64_t kv_cells = 0;         // >= 2
  double step_ms = 0;           // of every step
  double prefill_us = 0;        // for each prompt token that is not cached
  double decode_us = 0;         // for each sequence that gets a token
  int32_t chunk_tokens = 2048;  // of prompts, in one step
};

struct MockEngineOptions {
  std::string model_path;  // for EngineInfo only
  int32_t vocab_size = 0;
  int32_t context_length = 0;
  std::vector<TokenId> special_ids;    // left out of the answers
  std::vector<TokenId> eos_token_ids;  // for EngineInfo only
  double ttft_ms = 0;                  // >= 0
  double itl_ms = 0;                   // >= 0
  int32_t tokens_per_step = 1;         // >= 1
  MockFaultRates faults;
  int32_t max_running_requests = 16384;      // >= 1; the others wait
  int32_t max_queued_requests = 1024;        // >= 0; beyond it Submit is refused
  uint64_t seed = 0;                         // of the faults
  std::optional<MockSimulation> simulation;  // of kGenerate; then ttft, itl and faults are not used
  // Unless kGenerate, what it gives follows mock_pooling_engine.h.
  ModelTask task = ModelTask::kGenerate;
  int32_t labels = 1;  // kClassify: >= 1
};

// Starts the engine's one thread.
std::unique_ptr<Engine> NewMockEngine(MockEngineOptions options);

}  // namespace portico
