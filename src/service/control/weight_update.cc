#include "service/control/weight_update.h"

#include <string>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace portico {

namespace {

// A path where nothing is, is a bad value of the field; what the engine says of another field stays.
Status BlamePath(const Status& status) {
  const bool not_found = status.code() == StatusCode::kNotFound;
  const std::string field = FieldOf(status);
  return Error(not_found ? StatusCode::kInvalidArgument : status.code(),
               std::string(MessageOf(status)), field.empty() ? "model_path" : field);
}

}  // namespace

void UpdateWeights(const ModelRegistry& models, std::string_view name, WeightUpdate update,
                   TimePoint deadline, ControlDone done) {
  const StatusOr<const ServingModel*> found = models.Find(name);
  if (!found.ok()) return done(found.status());
  UpdateWeightsControl& control = update.control;
  if (control.path.empty()) {
    return done(InvalidArgument("model_path", "model_path must not be empty"));
  }
  const ServingModel* model = *found;
  auto updated = [model, path = control.path, version = control.weight_version,
                  life = model->engine->life(), keep_pause = update.keep_pause, deadline,
                  done = std::move(done)](const Status& status) mutable {
    if (!status.ok()) return done(BlamePath(status));
    model->weights->Set(path, version, life);
    LogInfo("the model {} continues with the weights at {}", model->id, path);
    if (!keep_pause) return done(OkStatus());
    model->engine->Control(PauseControl{PauseMode::kInPlace}, deadline, std::move(done));
  };
  model->engine->Control(std::move(control), deadline, std::move(updated));
}

void NoteWeightVersion(const ModelRegistry& models, std::string_view name,
                       const std::string& version) {
  const StatusOr<const ServingModel*> named = models.Find(name);
  if (!named.ok()) return;
  const auto note = [&version](const ServingModel& model) {
    model.weights->SetVersion(version, model.engine->life());
  };
  if (!name.empty()) return note(**named);
  for (const ServingModel* model : models.models()) {
    if (model->engine->load().healthy) note(*model);
  }
}

}  // namespace portico
