// A context of a model whose tokens see earlier ones only, with Portico's attention where that serves.
//
// What libllama builds for a model, and what its memory can do, shows only when it is used. So two tokens are computed with
// each new context, which the first request would otherwise wait for: weights are read from the disk then.
#pragma once

#include <memory>

#include "base/status.h"
#include "engine/llama/attention/decoder_graph.h"
#include "engine/llama/model/llama_context.h"
#include "engine/llama/model/model.h"

namespace portico::llama {

struct DecoderContext {
  std::unique_ptr<LlamaContext> context;
  // The graph that was given is used. False: all attention is libllama's.
  bool own_attention = false;
  // No batch may have attention of libllama's: it rounds what must not be rounded, or depends on the rest of the batch.
  bool all_own = false;
  // Tokens can be taken out of the middle and the end of a sequence. Recurrent and compressed states cannot be cut; then all
  // attention is libllama's, since it splits such a model's batches.
  bool can_cut = false;
};

// `params` as for LlamaContext::Create(), with room for two tokens; `graph` outlives the context, or is null for libllama's
// attention. Flash attention of libllama rounds float32 keys and values to float16, so with float32 arithmetic it may only
// be in a graph from which Portico takes all of it. Errors: INTERNAL (libllama refused), UNIMPLEMENTED (deterministic
// inference, which this model cannot have), INVALID_ARGUMENT (field "kv_cache_dtype": nor that type of its cache).
StatusOr<DecoderContext> MakeDecoderContext(const LlamaModel& model,
                                            const llama_context_params& params,
                                            DecoderGraph* graph);

}  // namespace portico::llama
