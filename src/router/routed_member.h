// One of the engines behind a RoutedEngine, and what the policies see of it.
#pragma once

#include <memory>

#include "engine/engine.h"
#include "router/worker.h"

namespace portico::router {

struct RoutedMember {
  WorkerPtr worker;
  std::shared_ptr<Engine> engine;
};

}  // namespace portico::router
