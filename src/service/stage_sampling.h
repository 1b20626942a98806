// `stage_sampling` of a request → the options of the chat that one stage answers.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/status.h"
#include "message/text_request.h"
#include "pipeline/part.h"
#include "pipeline/request.h"
#include "text/json.h"

namespace portico {

// The values are checked (api/openai/audio/chat_stage_fields.h).
void SetStageSampling(const pipeline::Request& request, std::string_view stage,
                      GenerationOptions* options);

// Adds what was heard to `heard`, by the mark of its sound. INTERNAL: the chat has no such sound, so
// that the stage that says so is wrong.
Status AddHeard(const pipeline::HeardPart& part, const pipeline::Request& request,
                std::map<std::string, std::string>* heard);

// The chat's messages with what was heard where its marks are; marks are random, nothing else
// looks like one. `heard` is by mark. INVALID_ARGUMENT where nothing was understood.
Status PutHeard(const std::map<std::string, std::string>& heard, const pipeline::Request& request,
                Json* messages);

}  // namespace portico
