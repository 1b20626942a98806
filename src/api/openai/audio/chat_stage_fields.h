// Fields of a chat that are for single stages of a pipeline.
#pragma once

#include "base/status.h"
#include "pipeline/pipeline.h"
#include "pipeline/request.h"
#include "text/json.h"

namespace portico::api::openai {

// Takes `stage_params`, `stage_sampling` and `talker_*` out of the body. Values are checked; that a
// stage takes them is what the pipeline says when it gets the request. Errors name the field.
Status TakeStageFields(const pipeline::Pipeline& pipeline, Json* body, pipeline::Request* request);

// Takes a member out of an object; null if it has none of that name.
Json TakeMember(std::string_view name, Json* object);

}  // namespace portico::api::openai
