// Quantization of an imported file by libllama.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "llama.h"

namespace portico::llama {

// The file type for --quantization's value ("q8_0", "q4_k_m", …, any case), or INVALID_ARGUMENT
// listing the names.
StatusOr<llama_ftype> ParseQuantization(const std::string& name);

// The name of a file type as ParseQuantization() takes it, if it is one of those.
std::optional<std::string> QuantizationName(int64_t ftype);

// Reads the GGUF `from` and writes `to`, which is incomplete after an error. `done` is called on
// this thread about ten times a second with an estimate of the share written.
Status Quantize(const std::string& from, const std::string& to, llama_ftype ftype, int threads,
                const std::function<void(double)>& done);

}  // namespace portico::llama
