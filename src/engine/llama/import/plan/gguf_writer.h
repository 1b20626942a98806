// Writes a planned import as a GGUF file
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md), one slice of one tensor in memory at
// a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/status.h"
#include "engine/llama/import/plan/import_plan.h"

namespace portico::llama {

// Bytes of the whole file.
StatusOr<uint64_t> GgufBytes(const ImportPlan& plan);

// Writes the file under `temp_path`, synced; it is removed again on an error. `done` is called with
// the share written, 0 to 1.
Status WriteGguf(const ImportPlan& plan, const WeightFiles& weights, const std::string& temp_path,
                 const std::function<void(double)>& done);

}  // namespace portico::llama
