// What must hold of a graph before anything of it starts.
#pragma once

#include <string>

#include "base/status.h"
#include "pipeline/config.h"

namespace portico::pipeline {

// Refuses doubled and missing stages, stages that nothing reaches, stages that lead nowhere, cycles
// and fan-in without a rule how to merge.
Status CheckGraph(const PipelineConfig& config, const std::string& file);

// The stages behind one, in order, each once.
std::vector<std::string> StagesBehind(const StageConfig& stage);

}  // namespace portico::pipeline
