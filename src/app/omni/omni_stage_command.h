#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "pipeline/config/config.h"

namespace portico {

// The flags of `portico omni stage`, and what they mean.
extern const char kOmniStageUsage[];

// `portico omni stage CONFIG --listen HOST:PORT`: serves stages of the file to pipelines on other
// hosts until SIGINT or SIGTERM. `*usage`: it fails for what the flags say.
Status OmniStage(const std::string& config, const pipeline::Overrides& overrides,
                 const std::vector<std::string>& flags, bool* usage);

}  // namespace portico
