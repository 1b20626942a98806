// Bodies of GET /v1/models and /v1/models/{id}.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace portico::api::openai {

struct ModelCard {
  std::string id;
  int64_t created = 0;  // Unix seconds
  int64_t max_model_len = 0;
};

std::string ModelBody(const ModelCard& card);
std::string ModelListBody(const std::vector<ModelCard>& cards);

}  // namespace portico::api::openai
