// An engine without a model whose steps take the time, and whose cache has the size, of a real one's:
// what gateways and schedulers are tried on. Its scheduler, prefix tree and KV cache are those of the
// llama engine (engine/llama/generation/scheduler.h), so it chunks prompts, shares prefixes, evicts and retracts.
//
// A step takes step_ms + prefill_us for each prompt token that it computes + decode_us for each
// sequence that gets a token. The answer is as the mock's (mock_engine.h): the prompt's own tokens
// without its special ones, again and again, max_new_tokens long.
#pragma once

#include <memory>

#include "engine/mock/mock_engine.h"

namespace portico {

// `options.simulation` is set. Starts the engine's one thread.
std::unique_ptr<Engine> NewSimulatedEngine(MockEngineOptions options);

}  // namespace portico
