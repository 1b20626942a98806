#include "engine/llama/pooling/pooling_runner.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/llama/attention/decoder_context.h"

namespace portico::llama {
namespace {

// Of the one text that goes on in a later step; the others come after it.
constexpr llama_seq_id kBegun = 0;
// Of the token that fills up a batch of one. So it needs no position behind the text's.
constexpr llama_seq_id kFilling = kBegun + 2;

llama_context_params ContextParams(const LlamaModel& model, const PoolingRunnerOptions& options) {
  llama_context_params params = model.ContextParams();
  params.n_batch = static_cast<uint32_t>(options.max_tokens);
  params.n_ubatch = params.n_batch;
  // With the cell of the token that fills a batch up.
  params.n_ctx = std::max(static_cast<uint32_t>(options.cells), params.n_batch) +
                 (model.pooling()->causal ? 1 : 0);
  params.n_seq_max = static_cast<uint32_t>(std::max(options.max_texts, kFilling + 1));
  // libllama wants room for a row of each sequence, even if their tokens fit no batch.
  params.n_outputs_max = std::max(params.n_batch, params.n_seq_max);
  params.n_threads = params.n_threads_batch = options.threads;
  params.embeddings = true;
  params.pooling_type = LLAMA_POOLING_TYPE_NONE;
  if (!model.pooling()->causal) params.attention_type = LLAMA_ATTENTION_TYPE_NON_CAUSAL;
  params.offload_kqv = false;
  params.op_offload = false;
  // An encoder's attention keeps nothing in a cache. libllama's fast form rounds keys and values to 16 bits, and skips
  // what one text of a batch has not to do with another.
  if (!model.pooling()->causal && !options.exact) {
    params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_AUTO;
  }
  return params;
}

}  // namespace

StatusOr<std::unique_ptr<PoolingRunner>> PoolingRunner::Create(
    const LlamaModel& model, const PoolingRunnerOptions& options) {
  std::unique_ptr<PoolingRunner> runner(new PoolingRunner(*model.pooling()));
  llama_context_params params = ContextParams(model, options);
  if (model.pooling()->gelu) {
    params.cb_eval = EncoderGraph::OnTensor;
    params.cb_eval_user_data = &runner->graph_;
  }
  if (model.pooling()->causal) {
    if (model.options().deterministic) runner->decoder_.MakeProductsInvariant(/*several=*/true);
    PORTICO_ASSIGN_OR_RETURN(DecoderContext made,
                             MakeDecoderContext(model, params, &runner->decoder_));
    runner->context_ = std::move(made.context);
    runner->all_own_ = made.all_own;
    runner->fills_up_ = made.own_attention;
  } else {
    PORTICO_ASSIGN_OR_RETURN(runner->context_, LlamaContext::Create(model, params));
  }
  runner->state_size_ = static_cast<size_t>(llama_model_n_embd_out(model.get()));
  runner->goes_on_ = model.pooling()->causal && runner->context_->memory() != nullptr;
  return runner;
}

void PoolingRunner::Fill(const std::vector<Piece>& pieces) {
  tokens_.clear();
  inputs_.clear();
  positions_.clear();
  sequences_.clear();
  rows_.clear();
  filled_up_ = false;
  graph_.text_begins.assign(1, 0);
  llama_seq_id next = kBegun + 1;
  for (const Piece& piece : pieces) {
    FillRows(piece);
    if (!model_.input.empty()) FillInputs(piece);
    const bool whole = piece.text->computed == 0 && piece.last();
    sequences_.insert(sequences_.end(), static_cast<size_t>(piece.count), whole ? next++ : kBegun);
    graph_.text_begins.push_back(static_cast<int32_t>(rows_.size()));
  }
  if (fills_up_) FillUp();
  if (model_.causal) decoder_.Begin(graph_.text_begins, positions_);
  sequence_counts_.assign(tokens_.size(), 1);
  wanted_.assign(tokens_.size(), 1);
  sequence_pointers_.clear();
  for (llama_seq_id& sequence : sequences_) sequence_pointers_.push_back(&sequence);
}

// Tokens, positions and rows of a piece. RoBERTa counts the tokens that are not padding, and all padding has the
// position before theirs. Within a text libllama wants positions that do not fall, so that padding comes first: an
// encoder knows a token's place by its position alone.
void PoolingRunner::FillRows(const Piece& piece) {
  const std::vector<TokenId>& text = *piece.text->request.tokens;
  const auto begin = text.begin() + piece.text->computed;
  const auto first = static_cast<int32_t>(tokens_.size());
  const auto is_padding = [this](TokenId token) {
    return model_.first_position > 0 && token == model_.padding_id;
  };
  const auto padding = static_cast<int32_t>(std::count_if(begin, begin + piece.count, is_padding));
  llama_pos next = model_.first_position + piece.text->computed;
  int32_t padding_row = first, row = first + padding;
  tokens_.resize(tokens_.size() + static_cast<size_t>(piece.count));
  positions_.resize(tokens_.size());
  for (int32_t i = 0; i < piece.count; ++i) {
    const TokenId token = begin[i];
    const int32_t at = is_padding(token) ? padding_row++ : row++;
    tokens_[static_cast<size_t>(at)] = token;
    positions_[static_cast<size_t>(at)] = is_padding(token) ? model_.first_position - 1 : next++;
    rows_.push_back(at);
  }
}

// No model has both a table and padding that moves.
void PoolingRunner::FillInputs(const Piece& piece) {
  const PoolingRequest& request = piece.text->request;
  const size_t columns = model_.input.columns;
  size_t at = inputs_.size();
  inputs_.resize(at + static_cast<size_t>(piece.count) * columns);
  const auto begin = static_cast<size_t>(piece.text->computed);
  for (size_t i = begin; i < begin + static_cast<size_t>(piece.count); ++i, at += columns) {
    const uint8_t type = request.token_types.empty() ? 0 : request.token_types[i];
    model_.input.LookUp((*request.tokens)[i], type, inputs_.data() + at);
  }
}

void PoolingRunner::FillUp() {
  filled_up_ = tokens_.size() == 1;
  if (!filled_up_) return;
  tokens_.push_back(tokens_[0]);
  const size_t columns = inputs_.size();
  inputs_.resize(2 * columns);
  std::copy_n(inputs_.begin(), columns, inputs_.begin() + static_cast<std::ptrdiff_t>(columns));
  positions_.push_back(0);
  sequences_.push_back(kFilling);
}

Status PoolingRunner::Run(const std::vector<Piece>& pieces, int32_t threads,
                          const std::atomic<bool>& cancelled) {
  Fill(pieces);
  ForgetAbandoned(pieces);
  llama_set_n_threads(context_->get(), threads, threads);
  const bool embedded = !inputs_.empty();
  const llama_batch batch = {static_cast<int32_t>(tokens_.size()),
                             embedded ? nullptr : tokens_.data(),
                             embedded ? inputs_.data() : nullptr,
                             positions_.data(),
                             sequence_counts_.data(),
                             sequence_pointers_.data(),
                             wanted_.data()};
  Status status = context_->Run(batch, cancelled);
  if (filled_up_) llama_memory_seq_rm(context_->memory(), kFilling, -1, -1);
  if (status.ok() && all_own_ && decoder_.foreign_layers() + decoder_.foreign_products() > 0) {
    status = Error(StatusCode::kInternal,
                   "libllama's own attention has computed a part of the batch, which rounds");
  }
  if (status.ok()) {
    ForgetFinished(pieces);
  } else {
    Clear();
  }
  return status;
}

// Where a text begins that goes on later, the one before it may have been aborted half-way.
void PoolingRunner::ForgetAbandoned(const std::vector<Piece>& pieces) {
  llama_memory_t memory = context_->memory();
  if (memory == nullptr) return;
  for (const Piece& piece : pieces) {
    if (piece.text->computed == 0 && !piece.last()) llama_memory_seq_rm(memory, kBegun, -1, -1);
  }
}

// The states stay readable: they are copies.
void PoolingRunner::ForgetFinished(const std::vector<Piece>& pieces) {
  llama_memory_t memory = context_->memory();
  if (memory == nullptr) return;
  llama_seq_id next = kBegun + 1;
  for (const Piece& piece : pieces) {
    if (!piece.last()) continue;
    llama_memory_seq_rm(memory, piece.text->computed == 0 ? next++ : kBegun, -1, -1);
  }
}

std::span<const float> PoolingRunner::State(int32_t index) const {
  return {llama_get_embeddings_ith(context_->get(), rows_[static_cast<size_t>(index)]),
          state_size_};
}

void PoolingRunner::Clear() {
  llama_memory_t memory = context_->memory();
  if (memory != nullptr) llama_memory_clear(memory, /*data=*/false);
}

}  // namespace portico::llama
