#include "service/weight_update.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace portico {

void UpdateWeights(const ModelRegistry& models, std::string_view name, UpdateWeightsControl update,
                   TimePoint deadline, ControlDone done) {
  const StatusOr<const ServingModel*> found = models.Find(name);
  if (!found.ok()) return done(found.status());
  if (update.path.empty()) {
    return done(InvalidArgument("model_path", "model_path must not be empty"));
  }
  const ServingModel* model = *found;
  auto updated = [model, path = update.path, version = update.weight_version,
                  done = std::move(done)](Status status) mutable {
    if (status.ok()) {
      model->weights->Set(path, version);
      LogInfo("the model {} goes on with the weights at {}", model->id, path);
      return done(std::move(status));
    }
    // A path where nothing is, is a bad value of the field.
    const bool not_found = status.code() == StatusCode::kNotFound;
    done(Error(not_found ? StatusCode::kInvalidArgument : status.code(),
               std::string(MessageOf(status)), "model_path"));
  };
  model->engine->Control(std::move(update), deadline, std::move(updated));
}

}  // namespace portico
