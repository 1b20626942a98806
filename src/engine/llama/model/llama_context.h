// A libllama context with its helper threads, and a way to stop what it computes.
//
// Used by one thread. The model must outlive it.
#pragma once

#include <atomic>
#include <memory>

#include "base/status.h"
#include "engine/llama/model/model.h"
#include "llama.h"

namespace portico::llama {

class LlamaContext {
 public:
  // `params`: the model's ContextParams() with sizes and threads. The helper threads sleep between batches: the cores
  // belong to the shards then. INTERNAL: libllama refused.
  static StatusOr<std::unique_ptr<LlamaContext>> Create(const LlamaModel& model,
                                                        llama_context_params params);
  ~LlamaContext();
  LlamaContext(const LlamaContext&) = delete;
  LlamaContext& operator=(const LlamaContext&) = delete;

  llama_context* get() const { return context_; }
  // Null: the model keeps nothing of one batch for the next.
  llama_memory_t memory() const { return llama_get_memory(context_); }

  // CANCELLED soon after `cancelled` has become true (after one operation of the model's graph), otherwise INTERNAL.
  Status Run(const llama_batch& batch, const std::atomic<bool>& cancelled);

 private:
  LlamaContext() = default;

  llama_context* context_ = nullptr;
  ggml_threadpool* threadpool_ = nullptr;
  const std::atomic<bool>* cancelled_ = nullptr;  // within Run()
};

}  // namespace portico::llama
