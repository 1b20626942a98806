// What the log says of a model's chat template.
#pragma once

#include "service/serving_model.h"

namespace portico {

// Finds out what the template does with conversations, now rather than with the first request: all of it for the debug log,
// and what changes conversations for every reader.
void LogTemplateFacts(const ServingModel& model);

}  // namespace portico
