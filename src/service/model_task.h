// Whether a model is of the kind that a request needs. Any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "service/model_registry.h"
#include "service/serving_model.h"

namespace portico {

// FAILED_PRECONDITION (field "model") saying what the model is and what to do instead.
Status CheckGenerates(const ServingModel& model);
Status CheckEmbeds(const ServingModel& model);
Status CheckClassifies(const ServingModel& model);
// A classifier with one label, or with "yes" and "no"; a judge.
Status CheckRanks(const ServingModel& model);

// What /v1/score can do: all but to give vectors.
Status CheckScores(const ServingModel& model);

// The model of that name; where the request leaves it to the server (ModelRegistry::MeansDefault) the first that `check`
// accepts, so that it finds the embedding model behind a chat model. The status of `check` where there is none, and the
// errors of ModelRegistry::FindForRequest.
StatusOr<const ServingModel*> FindAble(const ModelRegistry& models, std::string_view name,
                                       Status (*check)(const ServingModel& model));

// "generate", "embed", "classify".
std::string_view TaskName(ModelTask task);

}  // namespace portico
