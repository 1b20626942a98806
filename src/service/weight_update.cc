#include "service/weight_update.h"

#include <mutex>

#include "base/log.h"

namespace portico {

Status UpdateWeights(const ModelRegistry& models, std::string_view name,
                     const std::string& model_path) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, models.Find(name));
  if (model_path.empty()) return InvalidArgument("model_path", "model_path must not be empty");
  std::lock_guard one_by_one(model->weights->replacing);
  const Status status = model->engine->UpdateWeights(model_path);
  if (status.ok()) {
    model->weights->Set(model_path);
    LogInfo("the model {} goes on with the weights at {}", model->id, model_path);
    return status;
  }
  // A path where nothing is, is a bad value of the field.
  const bool not_found = status.code() == StatusCode::kNotFound;
  return Error(not_found ? StatusCode::kInvalidArgument : status.code(),
               std::string(MessageOf(status)), "model_path");
}

}  // namespace portico
