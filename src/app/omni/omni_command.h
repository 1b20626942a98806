#pragma once

#include <string>
#include <vector>

#include "app/options/options.h"
#include "pipeline/config/config.h"

namespace portico {

// `portico omni`: serve, check, resolve or explain a pipeline. argv holds what follows the command's
// name. Gives the exit status.
int OmniCommand(int argc, char** argv);

// What `portico omni serve CONFIG` serves: `config` is a PipelineConfig's file ("": the bundled one),
// `flags` are those of `portico serve`, and those of media.
StatusOr<ParsedOptions> OmniServeOptions(const std::string& config, pipeline::Overrides overrides,
                                         std::vector<std::string> flags);

}  // namespace portico
