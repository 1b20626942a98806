#include "engine/llama/llama_engine.h"

#include <algorithm>
#include <utility>

#include "base/counted.h"
#include "base/processors.h"
#include "engine/llama/generation/engine_thread.h"
#include "engine/llama/kv/kv_size.h"
#include "engine/llama/pooling/pooling_engine.h"
#include "fmt/format.h"

namespace portico::llama {
namespace {

// Rows of logits a step for prompts, beside one for every running request. A row is the
// vocabulary's size.
constexpr int32_t kPromptRows = 32;

// Threads wait for each other hundreds of times a step, spinning. A small model's step is over sooner
// than a preempted thread comes back: on a busy machine of two cores, tests of models with 0.2 million
// parameters took 139 s with two threads and 8 s with one.
constexpr int64_t kSmallModel = 20'000'000;

int32_t ThreadsFor(const LlamaEngineOptions& options, const ModelInfo& model) {
  if (options.threads > 0) return options.threads;
  if (model.parameters < kSmallModel) return 1;
  const int32_t all = UsableProcessors();
  return std::min<int32_t>(options.cores > 0 ? options.cores : all, GGML_MAX_N_THREADS);
}

Status Check(const LlamaEngineOptions& o) {
  const auto check = [](std::string_view name, int64_t value, int64_t low, int64_t high) {
    if (value >= low && value <= high) return OkStatus();
    return InvalidArgument(
        name, fmt::format("{} must be between {} and {}, not {}", name, low, high, value));
  };
  constexpr int64_t kMany = 1 << 30;
  PORTICO_RETURN_IF_ERROR(
      check("max_running_requests", o.max_running_requests, 1, kMaxRunningRequests));
  PORTICO_RETURN_IF_ERROR(check("max_queued_requests", o.max_queued_requests, 0, kMany));
  PORTICO_RETURN_IF_ERROR(check("chunked_prefill_size", o.chunked_prefill_size, 1, 1 << 16));
  PORTICO_RETURN_IF_ERROR(check("max_total_tokens", o.max_total_tokens, 0, kMany));
  return check("threads", o.threads, 0, GGML_MAX_N_THREADS);
}

}  // namespace

EngineInfo InfoOf(const ModelInfo& model, const LlamaEngineOptions& options) {
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
  for (TokenId id : options.end_token_ids) {
    const auto& known = info.eos_token_ids;
    const bool there = std::find(known.begin(), known.end(), id) != known.end();
    if (!there && id >= 0 && id < model.vocab_size) info.eos_token_ids.push_back(id);
  }
  info.can.pause = true;
  return info;
}

StatusOr<std::unique_ptr<LlamaEngine>> NewLlamaEngine(std::unique_ptr<LlamaModel> model,
                                                      const LlamaEngineOptions& options) {
  PORTICO_RETURN_IF_ERROR(Check(options));
  const ModelInfo& m = model->info();
  if (model->pooling() != nullptr) {
    if (model->options().deterministic && !model->pooling()->causal) {
      return Error(StatusCode::kUnimplemented,
                   m.path +
                       ": --enable-deterministic-inference is for models whose tokens see earlier "
                       "ones only",
                   "enable_deterministic_inference");
    }
    if (model->options().kv_cache_dtype != "auto") {
      return Error(StatusCode::kUnimplemented,
                   m.path + ": --kv-cache-dtype is for models that generate", "kv_cache_dtype");
    }
    return NewPoolingEngine(std::move(model), options, ThreadsFor(options, m));
  }
  PORTICO_ASSIGN_OR_RETURN(
      const KvSize size,
      ChooseKvSize({options.max_total_tokens, m.context_length, options.max_running_requests,
                    m.kv_bytes_per_cell, FreeMemoryBytes(options.mapped_bytes)}));
  RunnerOptions run;
  run.cells = size.cells;
  run.max_sequences_a_step = options.max_running_requests;
  run.max_tokens_a_step = options.chunked_prefill_size + options.max_running_requests;
  run.max_rows_a_step = options.max_running_requests + kPromptRows;
  run.threads = ThreadsFor(options, m);
  PORTICO_ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, ModelRunner::Create(*model, run));

  const bool sharing = options.enable_prefix_cache && runner->unshared_because().empty();
  const int32_t kept = sharing ? kMaxSequences - options.max_running_requests : 0;
  const SchedulerOptions scheduling = {options.max_running_requests, options.chunked_prefill_size,
                                       run.max_rows_a_step};
  const std::string prefixes = sharing ? "on"
                               : options.enable_prefix_cache
                                   ? fmt::format("off ({})", runner->unshared_because())
                                   : "off";
  std::string description = fmt::format(
      "KV cache: {} tokens, {} of {} ({}); prefix cache {}; up to {}; {}", size.cells,
      HumanBytes(size.cells * m.kv_bytes_per_cell), m.kv_dtype, size.reason, prefixes,
      Counted(options.max_running_requests, "running request"), Counted(run.threads, "thread"));
  EngineInfo info = InfoOf(m, options);
  info.context_length = static_cast<int32_t>(std::min<int64_t>(m.context_length, size.cells));
  info.max_total_tokens = size.cells;
  info.kv_bytes_per_cell = m.kv_bytes_per_cell;
  info.can.logprobs = true;
  info.can.grammars = true;
  info.can.prompt_logprobs = true;
  info.can.weight_updates = true;
  return std::make_unique<EngineThread>(std::move(model), std::move(runner), std::move(info), run,
                                        scheduling, kept, options.return_original_logprob,
                                        std::move(description));
}

}  // namespace portico::llama
