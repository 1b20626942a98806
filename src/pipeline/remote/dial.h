// Reaching stages on other hosts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/tls/tls_client.h"
#include "pipeline/config/config.h"
#include "pipeline/process/channel.h"

namespace portico::pipeline {

// The replicas of a process whose configuration has `hosts` take turns at these. `token` is empty for
// hosts on loopback only. INVALID_ARGUMENT: an address, the token or a file of TLS cannot be used.
StatusOr<StageOpener> OpenByDialing(const ProcessConfig& process, std::string token);

}  // namespace portico::pipeline
