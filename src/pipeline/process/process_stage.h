// A stage that runs in a process group, as the coordinator sees it.
#pragma once

#include <memory>

#include "pipeline/process/process_group.h"
#include "pipeline/stage.h"

namespace portico::pipeline {

// `local` checks requests before they start; null for a stage of Python. `config` and `group`
// outlive the stage.
std::unique_ptr<Stage> NewProcessStage(const StageConfig& config, std::unique_ptr<Stage> local,
                                       ProcessGroup* group, int replicas);

}  // namespace portico::pipeline
