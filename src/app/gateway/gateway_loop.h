// A gateway from its start to its drain, for the commands that run one.
#pragma once

#include <signal.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "app/options/route_options.h"
#include "base/status.h"

namespace portico {

// Serves until SIGINT or SIGTERM, which are blocked in all threads and in `signals` with SIGHUP and
// SIGUSR1, then drains. SIGHUP reads `words` again, whose flags begin with `prefix`; where that is null it ends the gateway
// too. `tick` is called about five times a second; its error ends the gateway. Returns why it could not start or go on.
Status RunGateway(const RouteOptions& options, const std::vector<std::string>* words,
                  std::string_view prefix, const sigset_t& signals,
                  const std::function<Status()>& tick = nullptr);

}  // namespace portico
