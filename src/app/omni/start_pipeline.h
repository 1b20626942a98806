// The pipeline of `portico omni serve` and `portico serve --speech`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/options/options.h"
#include "base/metrics.h"
#include "pipeline/config/config.h"
#include "pipeline/coordinator/pipeline.h"
#include "service/engine_stage.h"

namespace portico {

// A file of pipelines/, beside this program or above it. NOT_FOUND if it is not there.
StatusOr<std::string> BundledPipeline(const std::string& name);

// The file that a command line names ("": the bundled demo.yaml).
StatusOr<std::string> PipelineFile(const std::string& path);

// How processes of stages are started by this program.
pipeline::StagePrograms ProgramsOfStages();

// Reads the file ("": the bundled demo.yaml) with the overrides.
StatusOr<pipeline::PipelineConfig> LoadPipelineConfig(const std::string& path,
                                                      const pipeline::Overrides& overrides);

// Some stage is a served model.
bool UsesModel(const pipeline::PipelineConfig& config);

// A pipeline whose stages use no served model is itself served as one: the options have no other
// then, unless they name one.
void ServeAlone(const pipeline::PipelineConfig& config, ServeOptions* options);

// The kinds of stages that this program has.
pipeline::Pipeline::Kinds StageKinds(EngineStageContext context);

// What StartPipeline() will say of the native stages and their packages, before models are loaded for them.
Status CheckPipeline(const ServeOptions& options);

// The pipeline that the options ask for, or null if they ask for none. INVALID_ARGUMENT names file
// and line, UNAVAILABLE the package that is missing.
StatusOr<std::unique_ptr<pipeline::Pipeline>> StartPipeline(const ServeOptions& options,
                                                            EngineStageContext context,
                                                            Registry* registry);

// For the log: "`demo-omni`: speech (slt, kal), transcriptions, chats".
std::string DescribePipeline(const pipeline::Pipeline& pipeline);

}  // namespace portico
