// Types of the values in the KV cache, by the names that --kv-cache-dtype takes.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "ggml.h"

namespace portico::llama {

// Absent: "auto", the type that the arithmetic has. INVALID_ARGUMENT (field "kv_cache_dtype") names all there are.
StatusOr<std::optional<ggml_type>> ParseKvType(std::string_view name);

}  // namespace portico::llama
