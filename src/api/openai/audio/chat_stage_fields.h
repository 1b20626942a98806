// Fields that are for single stages of a pipeline, and what stages may be told of sampling.
#pragma once

#include <string_view>

#include "base/status.h"
#include "pipeline/coordinator/pipeline.h"
#include "pipeline/request.h"
#include "text/json.h"

namespace portico::api::openai {

// Takes `stage_params`, `stage_sampling` and `talker_*` out of the body. Values are checked; that a
// stage takes them is what the pipeline says when it gets the request. Errors name the field.
Status TakeStageFields(const pipeline::Pipeline& pipeline, Json* body, pipeline::Request* request);

// Whether a stage's sampling parameter `name` may have this value; errors name `field`.
Status CheckSamplingNumber(std::string_view field, std::string_view name, const Json& value);

// Takes a member out of an object; null if it has none of that name.
Json TakeMember(std::string_view name, Json* object);

}  // namespace portico::api::openai
