// What must hold of a graph before anything of it starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "pipeline/config/config.h"

namespace portico::pipeline {

// Refuses doubled and missing stages, stages that nothing reaches, stages that lead nowhere, cycles
// that no stream closes and fan-in without a rule how to merge. Sets what StageConfig tells of the
// whole graph, but for `python_behind`.
Status CheckGraph(const std::string& file, PipelineConfig* config);

// The stages behind one, in order, each once.
std::vector<std::string> StagesBehind(const StageConfig& stage);

// Whether the name is one of a graph's list of names: `next`, `wait_for`, a choice of them.
bool HasName(const std::vector<std::string>& names, std::string_view name);

}  // namespace portico::pipeline
