// The processes of a pipeline: which stages each has, how it is started and what it is told first.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "pipeline/config/config.h"
#include "pipeline/process/channel.h"
#include "pipeline/process/spawn.h"
#include "text/json.h"

namespace portico::pipeline {

// How stages with a `process` are started; without a program there are none.
struct StagePrograms {
  std::string program;        // this one: `PROGRAM omni-stage PARENT [WORDS …]`
  std::string python_script;  // portico/stage.py
  std::string token;          // of stages on other hosts (remote/greeting.h)
};

struct ProcessPlan {
  std::string name;
  std::vector<const StageConfig*> stages;  // of the configuration, at least one
  double stall_s = 0;                      // the shortest of its stages; 0: none has one
  bool restart = true;                     // all of them say so
};

// By name. `config` outlives the plans.
std::vector<ProcessPlan> PlanProcesses(const PipelineConfig& config);

// How it is started as a child of this process.
SpawnOptions SpawnOptionsOf(const ProcessPlan& plan, const StagePrograms& programs);
// Starts it so.
StageOpener OpenBySpawning(SpawnOptions options);

// The list of its stages, as kInit tells it. The same on every host that has the same file.
Json StagesJson(const ProcessPlan& plan);
// JSON of kInit; `file` is the pipeline's: beside it Python looks for modules first.
std::string InitText(const ProcessPlan& plan, const PipelineConfig& config,
                     const std::string& file);

}  // namespace portico::pipeline
