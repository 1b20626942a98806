// The engine that an unmodified SGLang computes: Portico in place of SGLang's own front end, on the scheduler's sockets.
// docs/sglang.md is its manual.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "engine/engine.h"
#include "engine/sglang/launch/incarnation.h"

namespace portico::sglang {

// Starts SGLang, or joins one that runs, and blocks until it is ready. Every error is one sentence for the person who
// started the server.
StatusOr<std::unique_ptr<Engine>> NewSglangEngine(
    const SglangOptions& options,
    const std::function<void(std::string_view stage, double fraction)>& progress);

}  // namespace portico::sglang
