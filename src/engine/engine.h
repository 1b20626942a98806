// The one interface in the middle: everything that can answer is an Engine. It takes token ids and returns
// token ids, and knows nothing of text, JSON, HTTP or gRPC.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "engine/control.h"
#include "message/generate.h"
#include "message/pooling.h"
#include "message/request_media.h"

namespace portico {

// Which shard (net::Shard::index()) something lives on.
using ShardIndex = int32_t;
inline constexpr ShardIndex kNoShard = -1;

// Where an engine delivers. One sink stands for one shard: all deltas of an engine step that belong to it
// arrive in one call, so a step costs one wake-up a shard and not one a token.
//
// An engine whose connection lives on the sink's own shard needs neither a lock nor a wake-up: from a turn of that
// shard it calls DeliverHere(). The rule: a stream's deltas all come by the same one of the two ways, and never from
// within Submit() or Abort(), whose callers are in the middle of something.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  // The shard on which the receivers live, or kNoShard.
  virtual ShardIndex shard() const { return kNoShard; }
  // Takes the batch. Called on an engine's thread; returns fast and may block only when the receiver is so far
  // behind that its bound is reached.
  virtual void Deliver(std::vector<TokenDelta> batch) = 0;
  // Takes the batch on the sink's own shard, and hands it on before it returns.
  virtual void DeliverHere(std::vector<TokenDelta> batch) { Deliver(std::move(batch)); }
};

// The same for texts that get one vector or one row of logits.
class PoolingSink {
 public:
  virtual ~PoolingSink() = default;
  virtual ShardIndex shard() const { return kNoShard; }
  // Takes what one step gave; as TokenSink::Deliver.
  virtual void Deliver(std::vector<PoolingOutput> batch) = 0;
  virtual void DeliverHere(std::vector<PoolingOutput> batch) { Deliver(std::move(batch)); }
};

// What an engine can do beyond tokens from tokens. What it lacks is refused before Submit, with the field named
// (service/plan/capability_checks.h).
struct EngineCapabilities {
  bool logprobs = false;           // of output tokens, of their alternatives and of tokens by id
  bool prompt_logprobs = false;    // the same of prompt tokens
  bool grammars = false;           // GenerateRequest::constraint
  bool compiles_grammars = false;  // it takes the constraint's text, and needs no compiled object
  bool hidden_states = false;
  bool routed_experts = false;
  std::array<bool, kMediaKinds> media{};  // by MediaKind
  bool input_embeddings = false;
  bool lora = false;
  bool sessions = false;
  bool custom_logit_processors = false;
  bool disaggregation = false;  // bootstrap_host, bootstrap_port, bootstrap_room
  bool priorities = false;
  bool cache_keys = false;  // extra_key, cache_salt
  bool stop_regex = false;
  int32_t data_parallel_ranks = 1;

  bool Takes(MediaKind kind) const { return media[static_cast<size_t>(kind)]; }

  bool pooling = false;       // SubmitPooling
  bool pooling_lora = false;  // PoolingRequest::lora_path
  int32_t pooling_ranks = 1;  // that PoolingRequest::data_parallel_rank may name
  bool pause = false;
  bool weight_updates = false;
  bool profiles = false;
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

  EngineCapabilities can;
  // By MediaKind: why it takes none of that, where the model could or takes another kind; else empty.
  std::array<std::string, kMediaKinds> no_media;
};

// A snapshot of counters; cheap to take, exact when the engine is idle.
struct EngineLoad {
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t retracted = 0;        // of those waiting: had been running, and lost their cells
  int64_t kv_cells_used = 0;    // held by live requests
  int64_t kv_cells_cached = 0;  // held by evictable prefixes only
  int64_t kv_cells_total = 0;
  uint64_t prompt_tokens = 0;  // since the start
  uint64_t cached_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t retractions = 0;
  uint64_t steps = 0;
  int64_t weight_updates_waiting = 0;  // behind the one that is being read
  uint64_t bad_frames = 0;             // of a remote engine: messages that could not be read
  double tokens_per_second = -1;       // as the engine measures it; negative: it does not
  double cache_hit_rate = -1;          // likewise
  bool paused = false;
  bool healthy = true;  // false: the engine has died and refuses everything
};

struct LoraAdapter {
  std::string name;
  std::string path;
};

// Thread safe; no method blocks on a step of the model.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;

  // Queues a request. The caller has checked it: prompt not empty, ids within the vocabulary, prompt shorter
  // than the context, prompt + max_new_tokens within it, sampling values in range, nothing asked for that info().can
  // lacks. Called on the shard sink->shard(), or anywhere for kNoShard.
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
  // `shard`: the sink's, on which this is called; kNoShard: called from elsewhere, or the sink has none.
  virtual void Abort(StreamId stream, ShardIndex shard) = 0;

  virtual EngineLoad load() const = 0;
  // One for each data-parallel rank or worker behind this engine; load() is their sum.
  virtual std::vector<EngineLoad> rank_loads() const { return {load()}; }
  // How often it has been started again, with the weights of its start.
  virtual uint64_t life() const { return 0; }
  // The adapters that requests can name now.
  virtual std::vector<LoraAdapter> adapters() const { return {}; }

  // Starts what control.h describes and returns at once. `done` is called exactly once, on any thread, possibly before
  // this returns, and by `deadline` at the latest as far as that is this engine's to say: DEADLINE_EXCEEDED means that
  // the work was not begun, or that its end is unknown. Stop() ends what is under way with UNAVAILABLE.
  // FAILED_PRECONDITION: this engine cannot do it.
  virtual void Control(EngineControl control, TimePoint /*deadline*/, ControlDone done) {
    done(CannotControl(info().name, control));
  }

  // Ends every stream (kAbort) and joins the engine's threads. Submit is refused from now on. Idempotent.
  virtual void Stop() = 0;
};

}  // namespace portico
