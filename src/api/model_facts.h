// What a model gives, as /v1/models, /get_model_info and gRPC's GetModelInfo tell it.
#pragma once

#include <string>

#include "engine/engine.h"
#include "text/json_writer.h"

namespace portico::api {

// Members of an object: task, is_generation, is_embedding; of a model that does not generate also its pooling, the
// size of its vectors and whether they have length 1, or its labels.
void AppendTaskFacts(const EngineInfo& engine, JsonWriter* w);

// {"0":"LABEL_0",…}; "" without labels.
std::string LabelsAsJson(const EngineInfo& engine);

}  // namespace portico::api
