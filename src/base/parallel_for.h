// One loop over several threads.
#pragma once

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "base/cpu_pool.h"

namespace portico {

// Calls body(0) … body(count - 1), each once, in no order that counts, on the calling thread and on those of `pool`
// (null: on the calling thread alone); returns when all have returned. The body must not throw. A pool that is busy
// or full makes this slower and never blocks it: the caller works until nothing is left.
void ParallelFor(CpuPool* pool, size_t count, absl::FunctionRef<void(size_t)> body);

}  // namespace portico
