// One log line every ten seconds in which anything happened: running, waiting, tokens/s, cache hit ratio.
#pragma once

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
  const ModelRegistry& models_;
  EngineLoad last_;
  TimePoint last_time_ = Clock::now();
};

}  // namespace portico
