// libllama's half of a step: a context with its KV cells, and a batch made of the scheduler's chunks.
//
// Used by one thread. The model must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/llama/kv_cache.h"
#include "engine/llama/llama_context.h"
#include "engine/llama/model.h"
#include "engine/llama/scheduler.h"

namespace portico::llama {

struct RunnerOptions {
  int64_t cells = 0;
  int32_t max_sequences_a_step = 1;
  int32_t max_tokens_a_step = 512;
  int32_t max_rows_a_step = 64;
  int32_t threads = 1;
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

  // The memory cannot be cut or shared position by position (recurrent states, sliding windows).
  bool whole_sequences_only() const { return whole_sequences_only_; }

  void Share(int32_t from, int32_t to, int32_t begin, int32_t end) override;
  void Remove(int32_t sequence, int32_t begin, int32_t end) override;

 private:
  ModelRunner() = default;
  void Fill(const Step& step);

  std::unique_ptr<LlamaContext> context_;
  int32_t vocab_size_ = 0;
  bool whole_sequences_only_ = false;

  // The batch, one entry a token; the memory is reused.
  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<llama_seq_id> sequences_;
  std::vector<llama_seq_id*> sequence_pointers_;
  std::vector<int32_t> sequence_counts_;
  std::vector<int8_t> wants_row_;
  std::vector<int32_t> rows_;  // batch index of each row
};

}  // namespace portico::llama
