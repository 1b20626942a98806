// sampling_params of POST /generate, and its names where they have no effect.
#pragma once

#include <simdjson.h>

#include <cstddef>
#include <string_view>

#include "api/common/field_reader.h"
#include "base/status.h"
#include "message/native_generate.h"

namespace portico::api::sglang {

inline constexpr size_t kMaxNativePrompts = 4096;

// An object, or a list with one, or null, for each prompt.
Status ReadSamplingParams(std::string_view name, Element value, NativeGenerateRequest* request);
// Beside sampling_params such a name would have no effect.
bool IsSamplingName(std::string_view name);
// Beside sampling_params, or in another API's name, a constraint would have no effect.
Status RefuseConstraint(std::string_view name, Element value);

}  // namespace portico::api::sglang
