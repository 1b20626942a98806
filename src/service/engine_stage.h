// portico.engine: a served model as the thinker of a pipeline.
#pragma once

#include <vector>

#include "pipeline/stage.h"
#include "service/generation/stream_hub.h"
#include "service/model_registry.h"
#include "service/service_metrics.h"

namespace portico {

// What such a stage works with; outlives the pipeline.
struct EngineStageContext {
  const ModelRegistry* models = nullptr;
  ServiceMetrics* metrics = nullptr;
  std::vector<StreamHub*> hubs;  // one a shard; requests take turns
};

// Takes a chat, with what was heard in the place of its clips, and emits text and how it finished.
// factory.model names the model; without it the request does.
pipeline::StageFactory EngineStageFactory(EngineStageContext context);

}  // namespace portico
