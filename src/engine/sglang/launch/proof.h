// Frames with which the encoder proves itself before any scheduler runs: the launcher has the package's own decoder read
// them and compares what they mean (python/portico/sglang_launch.py, prove()).
#pragma once

#include <string>

#include "engine/sglang/wire/codec.h"

namespace portico::sglang {

// The line for the launcher's standard input. FAILED_PRECONDITION: this package lacks what even a plain request needs.
StatusOr<std::string> ProofLine(const Codec& codec);

}  // namespace portico::sglang
