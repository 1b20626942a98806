// An engine for tests of what is decided before an engine is asked.
#pragma once

#include <utility>

#include "engine/engine.h"

namespace portico {

// Has facts, takes every request and answers none.
class IdleEngine final : public Engine {
 public:
  explicit IdleEngine(EngineInfo info) : info_(std::move(info)) {}

  const EngineInfo& info() const override { return info_; }
  Status Submit(GenerateRequest, TokenSink*) override { return OkStatus(); }
  void Abort(StreamId, ShardIndex) override {}
  EngineLoad load() const override { return {}; }
  void Stop() override {}

 private:
  EngineInfo info_;
};

}  // namespace portico
