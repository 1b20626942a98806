#include "base/log.h"

#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "base/log_file.h"
#include "base/open_line.h"

namespace portico {
namespace {

constexpr std::array<std::string_view, 5> kLevelNames = {"debug", "info", "warning", "error",
                                                         "critical"};

// Kept beside spdlog's own level, so that a dropped message costs one load.
std::atomic<LogLevel> g_level{LogLevel::kInfo};
std::atomic<bool> g_line_open{false};

spdlog::level::level_enum SpdlogLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kCritical:
      return spdlog::level::critical;
  }
  return spdlog::level::info;
}

spdlog::logger& Logger() {
  // Never destroyed: a thread may still log while the process ends.
  static spdlog::logger* const logger = [] {
    auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
    auto* made = new spdlog::logger("portico", std::move(sink));
    made->set_level(spdlog::level::trace);  // LogEnabled() decides
    made->set_pattern("[%Y-%m-%d %H:%M:%S.%e] %^%l%$ %v");
    return made;
  }();
  return *logger;
}

// The bytes of a control character at `i`, 0 where there is none. Those from U+0080 to U+009F (two bytes) end lines
// and begin escape sequences too.
size_t ControlAt(std::string_view text, size_t i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  if (byte < 0x20 || byte == 0x7f) return 1;
  if (byte != 0xc2 || i + 1 == text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[i + 1]);
  return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

bool HasControl(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (ControlAt(text, i) > 0) return true;
  }
  return false;
}

std::string OneLine(std::string_view message) {
  std::string line;
  for (size_t i = 0; i < message.size();) {
    size_t control = ControlAt(message, i);
    if (control == 0) line += message[i++];
    for (; control > 0; --control) {
      line += fmt::format("\\x{:02x}", static_cast<unsigned char>(message[i++]));
    }
  }
  return line;
}

}  // namespace

StatusOr<LogLevel> ParseLogLevel(std::string_view name) {
  std::string lower(name);
  absl::AsciiStrToLower(&lower);
  if (lower == "warn") lower = "warning";
  if (lower == "trace") lower = "debug";
  const auto it = std::find(kLevelNames.begin(), kLevelNames.end(), lower);
  if (it == kLevelNames.end()) {
    return InvalidArgument(
        "log-level", fmt::format("`{}` is not debug, info, warning, error or critical", name));
  }
  return static_cast<LogLevel>(it - kLevelNames.begin());
}

void InitLog(LogLevel level) {
  g_level.store(level, std::memory_order_relaxed);
  Logger();
}

void NoteOpenLine(bool open) { g_line_open.store(open, std::memory_order_relaxed); }

Status LogToFolder(const std::string& folder) {
  constexpr size_t kBytes = 64 << 20;
  constexpr size_t kFiles = 10;
  try {
    std::filesystem::create_directories(folder);
    auto sink = std::make_shared<spdlog::sinks::rotating_file_sink_mt>(folder + "/portico.log",
                                                                       kBytes, kFiles - 1);
    sink->set_pattern("[%Y-%m-%d %H:%M:%S.%e] %l %v");
    Logger().sinks().push_back(std::move(sink));
    Logger().flush_on(spdlog::level::debug);
    return OkStatus();
  } catch (const std::exception& error) {
    return InvalidArgument("log-dir", error.what());
  }
}

bool LogEnabled(LogLevel level) { return level >= g_level.load(std::memory_order_relaxed); }

void LogMessage(LogLevel level, std::string_view message) {
  if (!LogEnabled(level)) return;
  if (g_line_open.load(std::memory_order_relaxed) && g_line_open.exchange(false)) {
    std::fputc('\n', stderr);
  }
  if (HasControl(message)) {
    const std::string line = OneLine(message);
    Logger().log(SpdlogLevel(level), spdlog::string_view_t(line.data(), line.size()));
  } else {
    Logger().log(SpdlogLevel(level), spdlog::string_view_t(message.data(), message.size()));
  }
}

}  // namespace portico
