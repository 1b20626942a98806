#include "engine/llama/model/llama_context.h"

#include <exception>

#include "engine/llama/model/llama_log.h"
#include "fmt/format.h"
#include "ggml-cpu.h"

namespace portico::llama {
namespace {

Status NoContext(const LlamaErrors& errors) {
  return Error(StatusCode::kInternal,
               fmt::format("libllama made no context for this model: {}", errors.Text()));
}

}  // namespace

StatusOr<std::unique_ptr<LlamaContext>> LlamaContext::Create(const LlamaModel& model,
                                                             llama_context_params params) {
  const LlamaErrors errors;
  std::unique_ptr<LlamaContext> made(new LlamaContext());
  params.abort_callback = [](void* self) {
    const std::atomic<bool>* cancelled = static_cast<LlamaContext*>(self)->cancelled_;
    return cancelled != nullptr && cancelled->load(std::memory_order_relaxed);
  };
  params.abort_callback_data = made.get();
  try {
    made->context_ = llama_init_from_model(model.get(), params);
  } catch (const std::exception&) {
    return NoContext(errors);
  }
  if (made->context_ == nullptr) return NoContext(errors);

  ggml_threadpool_params pool = ggml_threadpool_params_default(params.n_threads);
  pool.poll = 0;
  made->threadpool_ = ggml_threadpool_new(&pool);
  if (made->threadpool_ == nullptr) return NoContext(errors);
  llama_attach_threadpool(made->context_, made->threadpool_, made->threadpool_);
  return made;
}

LlamaContext::~LlamaContext() {
  if (context_ != nullptr) {
    llama_detach_threadpool(context_);
    llama_free(context_);
  }
  if (threadpool_ != nullptr) ggml_threadpool_free(threadpool_);
}

Status LlamaContext::Run(const llama_batch& batch, const std::atomic<bool>& cancelled) {
  cancelled_ = &cancelled;
  const LlamaErrors errors;
  int32_t result = 0;
  try {
    result = memory() != nullptr ? llama_decode(context_, batch) : llama_encode(context_, batch);
  } catch (const std::exception& e) {
    return Error(StatusCode::kInternal, fmt::format("the model failed: {}", e.what()));
  }
  if (result == 0) return OkStatus();
  if (result == 2) return Error(StatusCode::kCancelled, "all requests of this batch have ended");
  return Error(StatusCode::kInternal,
               fmt::format("the model failed with code {}: {}", result, errors.Text()));
}

}  // namespace portico::llama
