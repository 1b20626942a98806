// As which half of a pair of prefill and decode workers a server runs: SGLang's --disaggregation-mode.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "router/worker.h"

namespace portico::router {

// Of the answer to /server_info: "prefill", "decode", or "null" for neither, as SGLang has it. Empty: it does not say.
std::string PairModeOf(std::string_view server_info);

// FAILED_PRECONDITION with the reason if a worker of that role does not run in its mode; OK where `mode` is empty.
Status CheckPairMode(Role role, std::string_view mode);

}  // namespace portico::router
