// What must hold of a graph before anything of it starts.
#pragma once

#include <string>

#include "base/status.h"
#include "pipeline/config.h"

namespace portico::pipeline {

// Refuses doubled and missing stages, stages that nothing reaches, stages that lead nowhere, cycles
// that no stream closes and fan-in without a rule how to merge. Sets what StageConfig tells of the
// whole graph, but for `python_behind`.
Status CheckGraph(const std::string& file, PipelineConfig* config);

// The stages behind one, in order, each once.
std::vector<std::string> StagesBehind(const StageConfig& stage);

}  // namespace portico::pipeline
