#include "engine/llama/attention/decoder_context.h"

#include <array>
#include <atomic>
#include <string_view>
#include <utility>

#include "fmt/format.h"

namespace portico::llama {
namespace {

Status CannotHaveCache(const LlamaModel& model, std::string_view why) {
  return InvalidArgument("kv_cache_dtype",
                         fmt::format("{}: --kv-cache-dtype {} cannot be had: {}", model.info().path,
                                     model.options().kv_cache_dtype, why));
}

StatusOr<std::unique_ptr<LlamaContext>> MakeContext(const LlamaModel& model,
                                                    const llama_context_params& params) {
  auto made = LlamaContext::Create(model, params);
  if (made.ok() || model.options().kv_cache_dtype == "auto") return made;
  return CannotHaveCache(model, MessageOf(made.status()));
}

// Computes two tokens and takes the second out again. True: that could be done.
StatusOr<bool> TryToCut(LlamaContext* context, DecoderGraph* graph) {
  std::array<llama_token, 2> tokens = {0, 0};
  std::array<llama_pos, 2> positions = {0, 1};
  std::array<int32_t, 2> counts = {1, 1};
  std::array<llama_seq_id, 2> sequences = {0, 0};
  std::array<llama_seq_id*, 2> pointers = {&sequences[0], &sequences[1]};
  std::array<int8_t, 2> wanted = {1, 1};
  if (graph != nullptr) graph->Begin(std::array<int32_t, 2>{0, 2}, positions);
  const llama_batch batch = {
      2, tokens.data(), nullptr, positions.data(), counts.data(), pointers.data(), wanted.data()};
  PORTICO_RETURN_IF_ERROR(context->Run(batch, std::atomic<bool>(false)));
  llama_memory_t memory = context->memory();
  if (memory == nullptr) return false;
  const bool cut = llama_memory_seq_rm(memory, 0, 1, 2);
  llama_memory_seq_rm(memory, 0, -1, -1);
  return cut;
}

bool AllIsOwn(const DecoderGraph& graph) {
  return graph.layers() > 0 && graph.foreign_layers() == 0 && graph.foreign_products() == 0;
}

Status NotDeterministic(const LlamaModel& model, const DecoderGraph& graph) {
  return Error(StatusCode::kUnimplemented,
               model.info().path +
                   ": --enable-deterministic-inference cannot be kept with this model's " +
                   (graph.foreign_products() > 0 ? "quantized experts" : "attention"),
               "enable_deterministic_inference");
}

}  // namespace

StatusOr<DecoderContext> MakeDecoderContext(const LlamaModel& model,
                                            const llama_context_params& params,
                                            DecoderGraph* graph) {
  DecoderContext made;
  if (graph != nullptr) {
    llama_context_params own = params;
    own.cb_eval = DecoderGraph::OnTensor;
    own.cb_eval_user_data = graph;
    const bool deterministic = model.options().deterministic;
    made.own_attention = true;
    made.all_own = model.info().float32 || deterministic;
    if (made.all_own) own.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_ENABLED;
    auto context = MakeContext(model, own);
    const bool as_asked = model.options().kv_cache_dtype != "auto";
    if (!context.ok() && (as_asked || !made.all_own)) return context.status();
    if (context.ok()) {
      made.context = *std::move(context);
      PORTICO_ASSIGN_OR_RETURN(made.can_cut, TryToCut(made.context.get(), graph));
      if (made.can_cut && (!made.all_own || AllIsOwn(*graph))) return made;
    }
    if (deterministic) return NotDeterministic(model, *graph);
    if (made.all_own && model.info().kv_type != GGML_TYPE_F32) {
      return CannotHaveCache(model,
                             "the arithmetic is float32, and this model has libllama's attention, "
                             "which would round to the cache's type");
    }
    made = {};
  }
  PORTICO_ASSIGN_OR_RETURN(made.context, MakeContext(model, params));
  PORTICO_ASSIGN_OR_RETURN(made.can_cut, TryToCut(made.context.get(), nullptr));
  return made;
}

}  // namespace portico::llama
