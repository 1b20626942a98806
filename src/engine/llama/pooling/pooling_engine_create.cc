// Which context and which steps a pooling engine has.
#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "engine/llama/kv/kv_size.h"
#include "engine/llama/pooling/pooling_engine.h"
#include "fmt/format.h"

namespace portico::llama {
namespace {

// Of a decoder, whose attention costs little beside its layers.
constexpr int32_t kDecoderBatch = 256;

// Of an encoder. A batch's layers cost less a token the more tokens use a matrix that has been read, until what is
// between two of them leaves the caches: for texts of 12 tokens all-MiniLM-L6-v2 (hidden size 384) takes the same for a
// token in batches of 96, 192 and 384, so that the smallest is best. Wider layers shift the balance to more tokens.
// `exact` is libllama's own attention, which a batch pays between all of its tokens.
int32_t EncoderBatch(const ModelInfo& model, bool exact) {
  return std::clamp(model.hidden_size / (exact ? 6 : 4), 64, 256);
}

// Contexts of an encoder, as there are threads: each has buffers of its own.
constexpr int32_t kMostContexts = 8;
// The longest text that all of them take; longer ones, which are few, wait for the first.
constexpr int32_t kSideTokens = 512;

// Of a model whose tokens see each other both ways, unless --context-length asks for more: a text is computed at once.
constexpr int32_t kMostTokensAtOnce = 8192;

// libllama knows at most kMaxSequences in one batch; one of them is the text that goes on.
constexpr int32_t kMaxTexts = kMaxSequences - 1;

EngineInfo PoolingInfo(const ModelInfo& model, const PoolingModel& pooling, size_t state_size,
                       const LlamaEngineOptions& options) {
  EngineInfo info = InfoOf(model, options);
  info.task = pooling.task;
  info.pooling = pooling.pooling;
  info.normalized = pooling.normalized;
  info.labels = pooling.labels;
  info.problem_type = pooling.problem_type;
  info.token_types = 1 + static_cast<int32_t>(pooling.input.types.size());
  info.can.pooling = true;
  if (pooling.task == ModelTask::kClassify) return info;
  info.embedding_size =
      static_cast<int32_t>(pooling.head.empty() ? state_size : pooling.head.output_size());
  for (const int32_t size : pooling.embedding_sizes) {
    if (size < info.embedding_size) info.embedding_sizes.push_back(size);
  }
  return info;
}

// What --max-total-tokens allows, else as much of the context as a quarter of the free memory holds.
int32_t LongestText(const ModelInfo& model, const LlamaEngineOptions& options) {
  const int64_t fitting =
      FreeMemoryBytes(options.mapped_bytes) / 4 / std::max<int64_t>(model.kv_bytes_per_cell, 1) -
      kDecoderBatch;
  const int64_t cells = options.max_total_tokens > 0 ? options.max_total_tokens
                                                     : std::max<int64_t>(fitting, kDecoderBatch);
  return static_cast<int32_t>(std::min<int64_t>(cells, model.context_length));
}

}  // namespace

StatusOr<std::unique_ptr<LlamaEngine>> NewPoolingEngine(std::unique_ptr<LlamaModel> model,
                                                        const LlamaEngineOptions& options,
                                                        int32_t threads) {
  const ModelInfo& m = model->info();
  PoolingRunnerOptions run;
  run.threads = threads;
  run.max_texts = kMaxSequences;
  int32_t context_length = m.context_length;
  const bool exact = model->options().dtype == "float32";
  size_t contexts = 1;
  const int32_t batch = model->pooling()->causal ? kDecoderBatch : EncoderBatch(m, exact);
  if (model->pooling()->causal) {
    context_length = LongestText(m, options);
    // The longest text's cells, and those of a batch beside it.
    run.cells = int64_t{context_length} + batch;
    run.max_tokens = batch;
  } else {
    if (model->options().context_length == 0) {
      context_length = std::min(context_length, kMostTokensAtOnce);
    }
    run.max_tokens = std::max(batch, context_length);
    run.exact = exact;
    contexts = static_cast<size_t>(std::clamp(threads, 1, kMostContexts));
  }
  const int32_t side_tokens = std::min(run.max_tokens, kSideTokens);
  PORTICO_ASSIGN_OR_RETURN(std::unique_ptr<PoolingLanes> lanes,
                           PoolingLanes::Create(*model, run, contexts, side_tokens));
  const PoolingRunner& runner = lanes->runner(0);
  if (model->pooling()->causal && !runner.goes_on()) {
    return Error(StatusCode::kUnimplemented,
                 m.file + ": libllama keeps no memory for this causal model");
  }
  EngineInfo info = PoolingInfo(m, *model->pooling(), runner.state_size(), options);
  info.context_length = context_length;
  const PoolingSchedulerOptions scheduling = {batch, kMaxTexts, runner.goes_on(), batch / 4};
  const std::string gives = info.task == ModelTask::kClassify
                                ? fmt::format("{} class logits", info.labels.size())
                                : fmt::format("vectors of {}", info.embedding_size);
  std::string description = fmt::format(
      "{}, pooling {}; texts of up to {} tokens, {} tokens a batch, {} at once; {}", gives,
      PoolingName(info.pooling), info.context_length, batch,
      contexts == 1 ? "1 batch" : fmt::format("{} batches", contexts), Counted(threads, "thread"));
  return std::make_unique<PoolingEngine>(std::move(model), std::move(lanes), std::move(info),
                                         scheduling, std::move(description));
}

}  // namespace portico::llama
