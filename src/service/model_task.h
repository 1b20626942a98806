// Whether a model is of the kind that a request needs. Any thread.
#pragma once

#include "base/status.h"
#include "service/serving_model.h"

namespace portico {

// FAILED_PRECONDITION (field "model") saying what the model is and what to do instead.
Status CheckGenerates(const ServingModel& model);
Status CheckEmbeds(const ServingModel& model);
Status CheckClassifies(const ServingModel& model);
// A classifier with one label.
Status CheckRanks(const ServingModel& model);

// "generate", "embed", "classify".
std::string_view TaskName(ModelTask task);

}  // namespace portico
