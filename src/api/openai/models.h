// Bodies of GET /v1/models and /v1/models/{id}.
#pragma once

#include <string>
#include <vector>

#include "service/serving_model.h"

namespace portico::api::openai {

std::string ModelBody(const ServingModel& model);
std::string ModelListBody(const std::vector<const ServingModel*>& models);

}  // namespace portico::api::openai
