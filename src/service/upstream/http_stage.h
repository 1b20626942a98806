// portico.http: an OpenAI-compatible server as the thinker, the ears or the voice of a pipeline.
#pragma once

#include "pipeline/stage.h"
#include "service/engine_stage.h"

namespace portico {

// factory: `url` (https://host/v1), `role` think, hear or say (also translate); `model`, `voice`,
// `voices`, `api_key_env` (the variable that has the key), `max_seconds` (of sound in one call).
pipeline::StageFactory HttpStageFactory(const EngineStageContext& context);

}  // namespace portico
