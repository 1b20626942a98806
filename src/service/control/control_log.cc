#include "service/control/control_log.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_limit.h"

namespace portico {
namespace {

std::string_view NameOfMode(PauseMode mode) {
  switch (mode) {
    case PauseMode::kAbort:
      return "abort";
    case PauseMode::kRetract:
      return "retract";
    case PauseMode::kInPlace:
      break;
  }
  return "in_place";
}

}  // namespace

std::string DoneText(const EngineControl& control) {
  return std::visit(
      Overloaded{
          [](const FlushCacheControl&) -> std::string { return "the cached prefixes are dropped"; },
          [](const PauseControl& pause) {
            return fmt::format("generation is paused ({})", NameOfMode(pause.mode));
          },
          [](const ContinueControl&) -> std::string { return "generation continues"; },
          [](const StartProfileControl&) -> std::string { return "the engine's profiler runs"; },
          [](const StopProfileControl&) -> std::string {
            return "the engine's profiler has been stopped";
          },
          [](const LoadLoraControl& load) {
            return fmt::format("the adapter `{:.128}` is loaded", load.name);
          },
          [](const UnloadLoraControl& unload) {
            return fmt::format("the adapter `{:.128}` is unloaded", unload.name);
          },
          [](const auto&) { return std::string(); },
      },
      control);
}

void LogControl(std::string_view line) {
  static LogLimit limit(10, std::chrono::seconds(1));
  if (const auto others = limit.Take(Clock::now())) LogInfo("{}{}", line, AndOthers(*others));
}

ControlDone WithLine(std::string_view model, const EngineControl& control, ControlDone done) {
  if (!LogEnabled(LogLevel::kInfo)) return done;
  std::string line = DoneText(control);
  if (line.empty()) return done;
  if (!model.empty()) line = fmt::format("model `{}`: {}", model, line);
  return [line = std::move(line), done = std::move(done)](Status status) mutable {
    if (status.ok()) LogControl(line);
    done(std::move(status));
  };
}

}  // namespace portico
