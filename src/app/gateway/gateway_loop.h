// A gateway from its start to its drain, for the commands that run one.
#pragma once

#include <signal.h>

#include <string>
#include <string_view>
#include <vector>

#include "app/gateway/worker_processes.h"
#include "app/options/route_options.h"
#include "base/status.h"

namespace portico {

// Serves until SIGINT or SIGTERM, which are blocked in all threads and in `signals` with SIGHUP and
// SIGUSR1, then drains. SIGHUP reads `words` again, whose flags begin with `prefix`; where that is null it ends the gateway
// too. `processes`, if any, are workers that it is told of: they are started, and again whenever they end, and their error
// ends the gateway. Returns why it could not start or go on.
Status RunGateway(const RouteOptions& options, const std::vector<std::string>* words,
                  std::string_view prefix, const sigset_t& signals,
                  WorkerProcesses* processes = nullptr);

}  // namespace portico
