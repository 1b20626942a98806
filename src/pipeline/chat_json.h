// Parts of a chat as JSON, for who answers it elsewhere: another server, or a stage of Python.
#pragma once

#include "message/text_request.h"
#include "text/json.h"

namespace portico::pipeline {

// How the chat wants to be sampled, with OpenAI's and SGLang's names; what it does not say is absent.
Json SamplingJson(const GenerationOptions& options);

// "none", "auto", "required", or a function by name. Lists of allowed tools are not told.
Json ToolChoiceJson(const ToolChoice& choice);

}  // namespace portico::pipeline
