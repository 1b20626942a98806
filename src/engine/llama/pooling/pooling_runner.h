// libllama's half of a pooling batch: a context, and a llama_batch made of the scheduler's pieces.
//
// A decoder's texts have Portico's attention, as generated ones have, so that one costs the same and has the same values
// whatever else is in its batch (docs/llama.md says of which weights). ggml multiplies a matrix of floats with one vector in
// another order of sums than with several, so a batch of one token is computed with a second one, which is forgotten again.
//
// Used by one thread. The model must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "engine/llama/attention/decoder_graph.h"
#include "engine/llama/layers/encoder_graph.h"
#include "engine/llama/model/llama_context.h"
#include "engine/llama/model/model.h"
#include "engine/llama/pooling/pooling_scheduler.h"

namespace portico::llama {

struct PoolingRunnerOptions {
  int32_t max_tokens = 512;  // a batch
  int32_t max_texts = 256;   // a batch
  int64_t cells = 0;  // of a model that can go on with a text: of the longest text and a batch
  int32_t threads = 1;
  bool exact = false;  // float32 throughout, whatever it costs
};

class PoolingRunner {
 public:
  // model.pooling() is not null.
  static StatusOr<std::unique_ptr<PoolingRunner>> Create(const LlamaModel& model,
                                                         const PoolingRunnerOptions& options);

  // Layers of the last Run() whose attention was Portico's own for decoders.
  int32_t own_layers() const { return decoder_.layers(); }
  // Whether a text can be computed in several steps: each token sees those before it only.
  bool goes_on() const { return goes_on_; }
  // Of a token's hidden state.
  size_t state_size() const { return state_size_; }

  // Computes the pieces with so many threads, at most the options'. On an error none of them counts as computed, and a
  // text that had been begun must begin again. CANCELLED soon after `cancelled` has become true, otherwise INTERNAL.
  Status Run(const std::vector<Piece>& pieces, int32_t threads, const std::atomic<bool>& cancelled);

  // The hidden state of token `index` of the last Run(), counted over all pieces. Valid until the next Run().
  std::span<const float> State(int32_t index) const;

  // Forgets the texts that have been begun.
  void Clear();

 private:
  explicit PoolingRunner(const PoolingModel& model)
      : model_(model), graph_(model.gelu.value_or(GeluForm::kErf)) {}
  void Fill(const std::vector<Piece>& pieces);
  void FillRows(const Piece& piece);
  void FillInputs(const Piece& piece);
  void FillUp();
  void ForgetAbandoned(const std::vector<Piece>& pieces);
  void ForgetFinished(const std::vector<Piece>& pieces);

  const PoolingModel& model_;
  EncoderGraph graph_;
  DecoderGraph decoder_;
  std::unique_ptr<LlamaContext> context_;
  size_t state_size_ = 0;
  bool goes_on_ = false;
  bool all_own_ = false;  // a batch with attention of libllama's has failed
  bool fills_up_ = false;
  bool filled_up_ = false;  // the batch's last token is nobody's

  // The row of each token in the batch, in the order of the pieces.
  std::vector<int32_t> rows_;
  // The batch, one entry a row; the memory is reused.
  std::vector<llama_token> tokens_;
  std::vector<float> inputs_;  // instead of tokens_, if the model has a table
  std::vector<llama_pos> positions_;
  std::vector<llama_seq_id> sequences_;
  std::vector<llama_seq_id*> sequence_pointers_;
  std::vector<int32_t> sequence_counts_;
  std::vector<int8_t> wanted_;
};

}  // namespace portico::llama
