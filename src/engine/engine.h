// The one interface in the middle: everything that can answer is an Engine. It takes token ids and returns
// token ids, and knows nothing of text, JSON, HTTP or gRPC.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "message/generate.h"
#include "message/pooling.h"

namespace portico {

// Where an engine delivers. One sink stands for one shard: all deltas of an engine step that belong to it
// arrive in one call, so a step costs one wake-up a shard and not one a token.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  // Takes the batch. Called on an engine's thread; returns fast and may block only when the receiver is so far
  // behind that its bound is reached.
  virtual void Deliver(std::vector<TokenDelta> batch) = 0;
};

// The same for texts that get one vector or one row of logits.
class PoolingSink {
 public:
  virtual ~PoolingSink() = default;
  // Takes what one step gave; as TokenSink::Deliver.
  virtual void Deliver(std::vector<PoolingOutput> batch) = 0;
};

// Fixed facts, known once the engine is ready.
struct EngineInfo {
  std::string name;  // "llama", "mock"
  std::string model_path;
  std::string architecture;      // "llama", "qwen3", …; empty where there is none
  std::string dtype;             // of the weights in memory
  int32_t vocab_size = 0;        // ids at or above it are refused before Submit
  int32_t context_length = 0;    // prompt and answer together
  int64_t max_total_tokens = 0;  // KV cells; 0: no KV cache
  int64_t kv_bytes_per_cell = 0;
  int64_t weight_bytes = 0;
  int32_t max_running_requests = 0;
  int32_t max_queued_requests = 0;
  // Answer length where the request names none; 0: what the context leaves.
  int32_t default_max_new_tokens = 0;
  std::vector<TokenId> eos_token_ids;

  ModelTask task = ModelTask::kGenerate;
  // Unless the task is kGenerate.
  Pooling pooling = Pooling::kMean;
  int32_t embedding_size = 0;  // of the pooled vector
  bool normalized = false;     // the model's vectors are meant to have length 1
  std::vector<int32_t>
      embedding_sizes;  // shorter vectors that the model was trained for; empty: it does not say
  std::vector<std::string> labels;  // kClassify: one a logit, id2label's order
  ProblemType problem_type = ProblemType::kSingleLabel;
  int32_t token_types = 1;  // type ids below it can be told apart
};

// A snapshot of counters; cheap to take, exact when the engine is idle.
struct EngineLoad {
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t kv_cells_used = 0;    // held by live requests
  int64_t kv_cells_cached = 0;  // held by evictable prefixes only
  int64_t kv_cells_total = 0;
  uint64_t prompt_tokens = 0;  // since the start
  uint64_t cached_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t retractions = 0;
  uint64_t steps = 0;
  bool paused = false;
  bool healthy = true;  // false: the engine has died and refuses everything
};

// What a pause does with the streams that are running or waiting. Those submitted later wait.
enum class PauseMode {
  kAbort,    // they end, as if aborted
  kRetract,  // they go back to the queue and hold no cells; they go on from the tokens they have
  kInPlace,  // they stand still and keep their cells
};

// Thread safe; no method blocks on a step of the model.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;

  // Queues a request. The caller has checked it: prompt not empty, ids within the vocabulary, prompt shorter
  // than the context, prompt + max_new_tokens within it, sampling values in range.
  // OK: exactly one terminal delta will come to `sink`, which must outlive it.
  // RESOURCE_EXHAUSTED: the queue is full. UNAVAILABLE: the engine has stopped or died. Then nothing comes.
  virtual Status Submit(GenerateRequest request, TokenSink* sink) = 0;

  // Queues texts that get one output each, all or none; together they are one request of the queue's bound. The
  // caller has checked them: not empty, ids within the vocabulary, at most context_length long.
  // OK: exactly one output a text will come to `sink`, which must outlive it, in any order and in any number of
  // deliveries. Errors as Submit; FAILED_PRECONDITION: the model's task is kGenerate.
  virtual Status SubmitPooling(std::vector<PoolingRequest> /*requests*/, PoolingSink*) {
    return Error(StatusCode::kFailedPrecondition,
                 "the engine " + info().name + " gives no vectors");
  }

  // Ends a stream within one step; its terminal delta says kAbort, unless it had ended already. Unknown streams
  // are ignored. The KV cells are free again (or evictable) by the time the terminal delta is delivered.
  virtual void Abort(StreamId stream) = 0;

  virtual EngineLoad load() const = 0;

  // Drops all cached prefixes. FAILED_PRECONDITION while requests run or wait, unless a pause has
  // taken their cells.
  virtual Status FlushCache() = 0;

  // Stops computing within one step, until Continue(). Streams can be submitted and aborted
  // meanwhile, and an abort takes effect at once. A pause during a pause does to the streams what
  // its mode says. FAILED_PRECONDITION: this engine cannot pause. UNAVAILABLE: it has stopped or
  // died.
  virtual Status Pause(PauseMode) {
    return Error(StatusCode::kFailedPrecondition, "the engine " + info().name + " cannot pause");
  }
  // Ends the pause; OK without one.
  virtual Status Continue() { return OkStatus(); }

  // Goes on with the weights at `path` (what --model-path takes): those of a model with the same
  // architecture, sizes, vocabulary and end tokens. Cached prefixes are dropped; running streams keep
  // the tokens they have, which are computed again. Blocks while the weights are read, so never on a
  // shard; the engine computes meanwhile. info() stays as it is.
  // Errors, after which nothing has changed: NOT_FOUND and INVALID_ARGUMENT for the path,
  // FAILED_PRECONDITION: another model, or this engine cannot; RESOURCE_EXHAUSTED: no memory for a
  // second model; UNAVAILABLE: the engine has stopped or died.
  virtual Status UpdateWeights(const std::string& /*path*/) {
    return Error(StatusCode::kFailedPrecondition,
                 "the engine " + info().name + " has no weights to update");
  }

  // Ends every stream (kAbort) and joins the engine's threads. Submit is refused from now on. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace portico
