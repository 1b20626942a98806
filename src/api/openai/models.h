// Bodies of GET /v1/models and /v1/models/{id}.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "service/serving_model.h"

namespace portico::api::openai {

std::string ModelBody(const ServingModel& model);
// `pipeline`: the name of one that is a model itself, or "", and when it was started.
std::string ModelListBody(const std::vector<const ServingModel*>& models,
                          std::string_view pipeline = {}, int64_t created = 0);

}  // namespace portico::api::openai
