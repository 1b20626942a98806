#include "engine/control.h"

#include <fmt/format.h>

#include <future>
#include <memory>
#include <utility>

#include "engine/engine.h"

namespace portico {
namespace {

struct Refusal {
  std::string_view engine;

  std::string operator()(const FlushCacheControl&) const {
    return fmt::format("the engine {} has no cache to flush", engine);
  }
  std::string operator()(const PauseControl&) const {
    return fmt::format("the engine {} cannot pause", engine);
  }
  std::string operator()(const ContinueControl&) const {
    return fmt::format("the engine {} cannot pause", engine);
  }
  std::string operator()(const UpdateWeightsControl&) const {
    return fmt::format("the engine {} has no weights to update", engine);
  }
  std::string operator()(const StartProfileControl&) const {
    return fmt::format(
        "the engine {} has no profiler; /metrics has its counters, and perf can attach to this "
        "process",
        engine);
  }
  std::string operator()(const StopProfileControl&) const { return "no profile has been started"; }
  std::string operator()(const OpenSessionControl&) const {
    return fmt::format("the engine {} has no sessions", engine);
  }
  std::string operator()(const CloseSessionControl&) const {
    return fmt::format("the engine {} has no sessions", engine);
  }
  std::string operator()(const LoadLoraControl&) const {
    return fmt::format("the engine {} loads no adapters", engine);
  }
  std::string operator()(const UnloadLoraControl&) const {
    return fmt::format("the engine {} loads no adapters", engine);
  }
  std::string operator()(const NativeCall&) const {
    return fmt::format("the engine {} has no such control", engine);
  }
};

}  // namespace

Status CannotControl(std::string_view engine_name, const EngineControl& control) {
  return Error(StatusCode::kFailedPrecondition, std::visit(Refusal{engine_name}, control));
}

Status CannotControlField(std::string_view engine_name, std::string_view field) {
  return InvalidArgument(
      field, fmt::format("{} is not supported by the engine {}: leave it out", field, engine_name));
}

Status ControlAndWait(Engine& engine, EngineControl control, Duration patience) {
  auto promise = std::make_shared<std::promise<Status>>();  // outlives a wait that gave up
  std::future<Status> done = promise->get_future();
  engine.Control(std::move(control), Clock::now() + patience,
                 [promise](Status status) { promise->set_value(std::move(status)); });
  if (done.wait_for(patience) != std::future_status::ready) {
    return Error(StatusCode::kDeadlineExceeded, "the engine has not answered in time");
  }
  return done.get();
}

}  // namespace portico
