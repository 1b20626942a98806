#include "service/model_registry.h"

#include <fmt/format.h>

namespace portico {

const ServingModel* ModelRegistry::FindNamed(std::string_view name) const {
  for (const auto& model : models_) {
    if (model->id == name) return model.get();
  }
  return nullptr;
}

bool ModelRegistry::MeansDefault(std::string_view name) const {
  if (name.empty()) return true;
  if (!accepts_any_name_ && name != kDefaultModelName) return false;
  return ready() && FindNamed(name) == nullptr;
}

StatusOr<const ServingModel*> ModelRegistry::Find(std::string_view name) const {
  if (!ready()) return Error(StatusCode::kUnavailable, "the model is still loading");
  if (models_.empty()) {
    return Error(StatusCode::kNotFound, "this server has no model of its own", "model",
                 "model_not_found");
  }
  if (name.empty()) return models_.front().get();
  if (const ServingModel* named = FindNamed(name)) return named;
  if (name == kDefaultModelName) return models_.front().get();
  std::string served;
  for (const auto& model : models_) served += (served.empty() ? "" : ", ") + model->id;
  return Error(StatusCode::kNotFound,
               fmt::format("The model `{}` does not exist; this server has: {}", name, served),
               "model", "model_not_found");
}

std::vector<const ServingModel*> ModelRegistry::models() const {
  std::vector<const ServingModel*> all;
  if (!ready()) return all;
  for (const auto& model : models_) all.push_back(model.get());
  return all;
}

}  // namespace portico
