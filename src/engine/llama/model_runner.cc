#include "engine/llama/model_runner.h"

#include <algorithm>

namespace portico::llama {

StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(const LlamaModel& model,
                                                           const RunnerOptions& options) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner());
  runner->vocab_size_ = model.info().vocab_size;
  runner->whole_sequences_only_ = llama_model_is_recurrent(model.get()) ||
                                  llama_model_is_hybrid(model.get()) ||
                                  llama_model_n_swa(model.get()) > 0;
  llama_context_params params = model.ContextParams();
  params.n_ctx = static_cast<uint32_t>(options.cells);
  params.n_batch = static_cast<uint32_t>(options.max_tokens_a_step);
  params.n_ubatch = params.n_batch;
  params.n_seq_max = static_cast<uint32_t>(options.max_sequences_a_step);
  params.n_outputs_max = static_cast<uint32_t>(options.max_rows_a_step);
  params.n_threads = params.n_threads_batch = options.threads;
  params.kv_unified = true;
  params.offload_kqv = false;
  params.op_offload = false;
  PORTICO_ASSIGN_OR_RETURN(runner->context_, LlamaContext::Create(model, params));
  return runner;
}

void ModelRunner::Fill(const Step& step) {
  tokens_.clear();
  positions_.clear();
  sequences_.clear();
  wants_row_.clear();
  rows_.clear();
  for (const Chunk& chunk : step.chunks) {
    const auto first = chunk.request->tokens.begin() + chunk.begin;
    tokens_.insert(tokens_.end(), first, first + chunk.count);
    for (int32_t i = 0; i < chunk.count; ++i) {
      const bool wants_row = i >= chunk.count - chunk.rows;
      if (wants_row) rows_.push_back(static_cast<int32_t>(wants_row_.size()));
      wants_row_.push_back(wants_row ? 1 : 0);
      positions_.push_back(chunk.begin + i);
      sequences_.push_back(chunk.request->branch.sequence);
    }
  }
  sequence_counts_.assign(tokens_.size(), 1);
  sequence_pointers_.clear();
  for (llama_seq_id& sequence : sequences_) sequence_pointers_.push_back(&sequence);
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
  return context_->Run(batch, cancelled);
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
