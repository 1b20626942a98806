#include "engine/llama/generation/model_runner.h"

#include <algorithm>
#include <string>
#include <utility>

namespace portico::llama {

StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(const LlamaModel& model,
                                                           const RunnerOptions& options) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner());
  runner->vocab_size_ = model.info().vocab_size;
  runner->positions_limit_ = model.info().positions.value_or(runner->positions_limit_);
  llama_context_params params = model.ContextParams();
  const std::string& dtype = model.info().dtype;
  runner->fills_up_ =
      options.own_attention && (dtype == "float32" || dtype == "float16" || dtype == "bfloat16");
  params.n_ctx = static_cast<uint32_t>(options.cells) + (runner->fills_up_ ? 1 : 0);
  params.n_batch = static_cast<uint32_t>(std::max(options.max_tokens_a_step, 2));
  params.n_ubatch = params.n_batch;
  params.n_seq_max = static_cast<uint32_t>(options.max_sequences_a_step);
  params.n_outputs_max = static_cast<uint32_t>(std::max(options.max_rows_a_step, 2));
  params.n_threads = params.n_threads_batch = options.threads;
  params.kv_unified = true;
  params.offload_kqv = false;
  params.op_offload = false;
  if (model.options().deterministic) runner->graph_.MakeProductsInvariant(runner->fills_up_);
  PORTICO_ASSIGN_OR_RETURN(
      DecoderContext made,
      MakeDecoderContext(model, params, options.own_attention ? &runner->graph_ : nullptr));
  runner->context_ = std::move(made.context);
  runner->all_own_ = made.all_own;
  if (!made.own_attention) runner->fills_up_ = false;
  if (!made.can_cut) {
    runner->unshared_because_ = "the model's memory cannot be cut";
  } else if (llama_model_n_swa(model.get()) > 0) {
    runner->unshared_because_ = "the model has sliding windows";
  }
  return runner;
}

void ModelRunner::Fill(const Step& step) {
  tokens_.clear();
  positions_.clear();
  sequences_.clear();
  wants_row_.clear();
  rows_.clear();
  request_begins_.clear();
  filled_up_ = false;
  for (const Chunk& chunk : step.chunks) {
    const auto first = chunk.request->tokens.begin() + chunk.begin;
    request_begins_.push_back(static_cast<int32_t>(tokens_.size()));
    tokens_.insert(tokens_.end(), first, first + chunk.count);
    for (int32_t i = 0; i < chunk.count; ++i) {
      const bool wants_row = i >= chunk.count - chunk.rows;
      if (wants_row) rows_.push_back(static_cast<int32_t>(wants_row_.size()));
      wants_row_.push_back(wants_row ? 1 : 0);
      positions_.push_back(chunk.begin + i);
      sequences_.push_back(chunk.request->branch.sequence);
    }
  }
  request_begins_.push_back(static_cast<int32_t>(tokens_.size()));
  if (fills_up_) FillUp();
  graph_.Begin(request_begins_, positions_);
  sequence_counts_.assign(tokens_.size(), 1);
  sequence_pointers_.clear();
  for (llama_seq_id& sequence : sequences_) sequence_pointers_.push_back(&sequence);
}

void ModelRunner::FillUp() {
  filled_up_ = tokens_.size() == 1 && positions_[0] + 1 < positions_limit_;
  if (filled_up_) {  // with what would follow, which the token before it does not see
    tokens_.push_back(tokens_[0]);
    positions_.push_back(positions_[0] + 1);
    sequences_.push_back(sequences_[0]);
    wants_row_.push_back(wants_row_[0]);
  } else if (rows_.size() == 1 && tokens_.size() > 1) {
    wants_row_[rows_[0] == 0 ? 1 : 0] = 1;
  }
}

Status ModelRunner::Run(const Step& step, const std::atomic<bool>& cancelled) {
  Fill(step);
  const llama_batch batch = {static_cast<int32_t>(tokens_.size()),
                             tokens_.data(),
                             nullptr,
                             positions_.data(),
                             sequence_counts_.data(),
                             sequence_pointers_.data(),
                             wants_row_.data()};
  const Status status = context_->Run(batch, cancelled);
  if (filled_up_) Remove(sequences_[1], positions_[1], -1);
  if (status.ok() && all_own_ && graph_.foreign_layers() + graph_.foreign_products() > 0) {
    return Error(StatusCode::kInternal,
                 "libllama's own attention has computed a part of the step, which rounds");
  }
  return status;
}

std::span<const float> ModelRunner::Logits(int32_t index) const {
  return {llama_get_logits_ith(context_->get(), rows_[static_cast<size_t>(index)]),
          static_cast<size_t>(vocab_size_)};
}

void ModelRunner::Share(int32_t from, int32_t to, int32_t begin, int32_t end) {
  llama_memory_seq_cp(context_->memory(), from, to, begin, end);
}

void ModelRunner::Remove(int32_t sequence, int32_t begin, int32_t end) {
  llama_memory_seq_rm(context_->memory(), sequence, begin == 0 ? -1 : begin, end);
}

}  // namespace portico::llama
