// Which context and which steps a pooling engine has.
#include <algorithm>

#include "engine/llama/kv_size.h"
#include "engine/llama/pooling_engine.h"
#include "fmt/format.h"

namespace portico::llama {
namespace {

// Of a decoder, whose attention costs little beside its layers.
constexpr int32_t kDecoderStep = 256;

// Of an encoder. A step computes attention between all its tokens, at a cost that grows with them, and its layers, at a
// cost a token that falls until their matrices are well used. all-MiniLM-L6-v2 (hidden size 384, float32), texts of 10
// tokens, CPU microseconds a token: 860 (one text a step), 623 (30 tokens), 632 (40), 687 (60), 736 (90), 863 (190),
// 1051 (250), 1668 (510); of 32 tokens: 607 (one text), 537 (64), 560 (96), 705 (128), 881 (256), 1306 (512). Wider
// layers shift the balance to more tokens.
int32_t EncoderStep(const ModelInfo& model) { return std::clamp(model.hidden_size / 6, 64, 256); }
// libllama knows at most kMaxSequences in one batch; one of them is the text that goes on.
constexpr int32_t kMaxTexts = kMaxSequences - 1;

EngineInfo InfoOf(const ModelInfo& model, const PoolingModel& pooling, size_t state_size,
                  const LlamaEngineOptions& options) {
  EngineInfo info;
  info.name = "llama";
  info.model_path = model.path;
  info.architecture = model.architecture;
  info.dtype = model.dtype;
  info.vocab_size = model.vocab_size;
  info.context_length = model.context_length;
  info.weight_bytes = model.size_bytes;
  info.max_running_requests = options.max_running_requests;
  info.max_queued_requests = options.max_queued_requests;
  info.eos_token_ids = model.eos_token_ids;
  info.task = pooling.task;
  info.pooling = pooling.pooling;
  info.normalized = pooling.normalized;
  info.labels = pooling.labels;
  info.token_types = 1 + static_cast<int32_t>(pooling.input.types.size());
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
      FreeMemoryBytes() / 4 / std::max<int64_t>(model.kv_bytes_per_cell, 1) - kDecoderStep;
  const int64_t cells = options.max_total_tokens > 0 ? options.max_total_tokens
                                                     : std::max<int64_t>(fitting, kDecoderStep);
  return static_cast<int32_t>(std::min<int64_t>(cells, model.context_length));
}

}  // namespace

StatusOr<std::unique_ptr<LlamaEngine>> NewPoolingEngine(std::unique_ptr<LlamaModel> model,
                                                        const LlamaEngineOptions& options,
                                                        int32_t threads) {
  const ModelInfo& m = model->info();
  PoolingRunnerOptions run;
  run.threads = threads;
  run.max_texts_a_step = kMaxSequences;
  int32_t context_length = m.context_length;
  const int32_t step = model->pooling()->causal ? kDecoderStep : EncoderStep(m);
  if (model->pooling()->causal) {
    context_length = LongestText(m, options);
    // The longest text's cells, and those of a step beside it.
    run.cells = int64_t{context_length} + step;
    run.max_tokens_a_step = step;
  } else {
    run.max_tokens_a_step = std::max(step, context_length);
  }
  PORTICO_ASSIGN_OR_RETURN(std::unique_ptr<PoolingRunner> runner,
                           PoolingRunner::Create(*model, run));
  if (model->pooling()->causal && !runner->goes_on()) {
    return Error(StatusCode::kUnimplemented,
                 m.file + ": libllama keeps no memory for this causal model");
  }
  EngineInfo info = InfoOf(m, *model->pooling(), runner->state_size(), options);
  info.context_length = context_length;
  const PoolingSchedulerOptions scheduling = {step, kMaxTexts, runner->goes_on()};
  const std::string gives = info.task == ModelTask::kClassify
                                ? fmt::format("{} class logits", info.labels.size())
                                : fmt::format("vectors of {}", info.embedding_size);
  std::string description =
      fmt::format("{}, pooling {}; texts of up to {} tokens, {} tokens a step; {} threads", gives,
                  PoolingName(info.pooling), info.context_length, step, threads);
  return std::make_unique<PoolingEngine>(std::move(model), std::move(runner), std::move(info),
                                         scheduling, std::move(description));
}

}  // namespace portico::llama
