// libllama's half of a step: a context with its KV cells, and a batch made of the scheduler's chunks.
//
// Used by one thread. The model must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "engine/llama/attention/decoder_context.h"
#include "engine/llama/attention/decoder_graph.h"
#include "engine/llama/generation/scheduler.h"
#include "engine/llama/kv/kv_cache.h"
#include "engine/llama/model/llama_context.h"
#include "engine/llama/model/model.h"

namespace portico::llama {

// A step computes two tokens at least, and two rows of logits if any, where the weights are floats: ggml multiplies a
// matrix with one vector in another order of sums than with several, so that an answer would depend on whether its
// request is alone. With two it is the same order as with many, and costs no more time (0.096 and 0.095 ms for 1,024 by
// 1,024 in bfloat16): reading the weights takes it. Matrices of q8_0, q4_0, q4_1, q5_0, q5_1 and mxfp4 give the same
// bits for every number of vectors; those of the K quantizations do not (docs/llama.md). The token that fills up a step is
// taken out of the memory again, so a memory that cannot be cut has no such steps.
struct RunnerOptions {
  int64_t cells = 0;
  int32_t max_sequences_a_step = 1;
  int32_t max_tokens_a_step = 512;
  int32_t max_rows_a_step = 64;
  int32_t threads = 1;
  bool own_attention = true;  // where it can serve (attention/decoder_graph.h); false: libllama's
};

class ModelRunner : public KvMemory {
 public:
  static StatusOr<std::unique_ptr<ModelRunner>> Create(const LlamaModel& model,
                                                       const RunnerOptions& options);

  // Computes the chunks. On an error none of them counts as computed; their cells must be removed.
  // CANCELLED soon after `cancelled` has become true (after one operation of the model's graph),
  // otherwise INTERNAL.
  Status Run(const Step& step, const std::atomic<bool>& cancelled);

  // Row `index` of the last Run(), in the order of the chunks: vocab_size raw logits. Valid until
  // the next Run().
  std::span<const float> Logits(int32_t index) const;

  // Layers of the last Run() whose attention was Portico's own.
  int32_t own_layers() const { return graph_.layers(); }

  // Why the memory cannot be shared position by position ("the model has sliding windows"); empty: it can.
  std::string_view unshared_because() const { return unshared_because_; }

  void Share(int32_t from, int32_t to, int32_t begin, int32_t end) override;
  void Remove(int32_t sequence, int32_t begin, int32_t end) override;

 private:
  ModelRunner() = default;
  void Fill(const Step& step);
  void FillUp();

  DecoderGraph graph_;
  std::unique_ptr<LlamaContext> context_;
  int32_t vocab_size_ = 0;
  int32_t positions_limit_ = std::numeric_limits<int32_t>::max();
  std::string_view unshared_because_;
  bool all_own_ = false;  // a step with attention of libllama's has failed
  bool fills_up_ = false;
  bool filled_up_ = false;  // the batch's last token is nobody's

  // The batch, one entry a token; the memory is reused.
  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<llama_seq_id> sequences_;
  std::vector<llama_seq_id*> sequence_pointers_;
  std::vector<int32_t> sequence_counts_;
  std::vector<int8_t> wants_row_;
  std::vector<int32_t> rows_;            // batch index of each row
  std::vector<int32_t> request_begins_;  // batch index of each request's first token, and the size
};

}  // namespace portico::llama
