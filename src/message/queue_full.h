// The reason of a refusal because as many requests run and wait as may.
#pragma once

#include <string_view>

namespace portico {

// `code` of the error's body, at a server (429) as at a gateway.
inline constexpr std::string_view kQueueFull = "queue_full";

}  // namespace portico
