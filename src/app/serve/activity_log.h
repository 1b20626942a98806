// One log line every ten seconds in which anything happened: running, waiting, tokens/s, cache hit ratio; and one when a
// model's engine has failed or answers again.
#pragma once

#include <set>

#include "base/clock.h"
#include "engine/engine.h"
#include "service/model_registry.h"

namespace portico {

class ActivityLog {
 public:
  explicit ActivityLog(const ModelRegistry& models) : models_(models) {}

  // Call it every ten seconds.
  void Tick();

 private:
  void NoteHealth(const ServingModel& model, bool healthy);

  const ModelRegistry& models_;
  std::set<const ServingModel*> failed_;
  EngineLoad last_;
  TimePoint last_time_ = Clock::now();
};

}  // namespace portico
