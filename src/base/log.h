// The log: lines on standard error, for the person who runs the server.
//
//   LogInfo("{} requests running", n);
//
// One message is one line: control characters in it (a client may have sent them) are written as
// \xNN. Thread safe. Not for hot paths: each line is a system call.
#pragma once

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "base/status.h"

namespace portico {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kCritical };

// "debug", "info", "warning", "error", "critical", in any case (SGLang's --log-level); "warn" is warning and
// "trace" (uvicorn's) is debug. Else INVALID_ARGUMENT.
StatusOr<LogLevel> ParseLogLevel(std::string_view name);

// Messages below `level` are dropped. Before the first call: info. May be called again.
void InitLog(LogLevel level);

bool LogEnabled(LogLevel level);
void LogMessage(LogLevel level, std::string_view message);

template <typename... Args>
void LogAt(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (LogEnabled(level)) LogMessage(level, fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
void LogDebug(fmt::format_string<Args...> format, Args&&... args) {
  LogAt(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogInfo(fmt::format_string<Args...> format, Args&&... args) {
  LogAt(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogWarning(fmt::format_string<Args...> format, Args&&... args) {
  LogAt(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogError(fmt::format_string<Args...> format, Args&&... args) {
  LogAt(LogLevel::kError, format, std::forward<Args>(args)...);
}
template <typename... Args>
void LogCritical(fmt::format_string<Args...> format, Args&&... args) {
  LogAt(LogLevel::kCritical, format, std::forward<Args>(args)...);
}

}  // namespace portico
