// A token's number in a model's vocabulary.
#pragma once

#include <cstdint>

namespace portico {

using TokenId = int32_t;
inline constexpr TokenId kNoToken = -1;

}  // namespace portico
