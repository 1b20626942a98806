#include "template/builtin/clock.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace portico::jinja {
namespace {

struct LocalTime {
  std::tm parts{};
  int microseconds = 0;
};

bool ParseFixed(const char* text, LocalTime* out) {
  int year, month, day;
  int hour = 0;
  int minute = 0;
  double second = 0;
  int count =
      std::sscanf(text, "%d-%d-%d%*1[T ]%d:%d:%lf", &year, &month, &day, &hour, &minute, &second);
  if (count < 3) return false;
  out->parts.tm_year = year - 1900;
  out->parts.tm_mon = month - 1;
  out->parts.tm_mday = day;
  out->parts.tm_hour = hour;
  out->parts.tm_min = minute;
  out->parts.tm_sec = static_cast<int>(second);
  out->parts.tm_isdst = -1;
  out->microseconds = static_cast<int>((second - out->parts.tm_sec) * 1e6 + 0.5);
  // For the day of the week and of the year.
  std::tm normalized = out->parts;
  if (std::mktime(&normalized) == -1) return false;
  out->parts.tm_wday = normalized.tm_wday;
  out->parts.tm_yday = normalized.tm_yday;
  return true;
}

LocalTime Now(const int64_t* now) {
  LocalTime time;
  if (now == nullptr) {
    const char* fixed = std::getenv("PORTICO_FIXED_TIME");
    if (fixed != nullptr && ParseFixed(fixed, &time)) return time;
  }
  int64_t microseconds = now != nullptr ? *now * 1'000'000
                                        : std::chrono::duration_cast<std::chrono::microseconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count();
  std::time_t seconds = microseconds / 1'000'000;
  localtime_r(&seconds, &time.parts);
  time.microseconds = static_cast<int>(microseconds % 1'000'000);
  return time;
}

// What Python's strftime treats itself: %f is microseconds, and a time without a zone has no %z, %Z, %:z.
std::string ExpandOwn(const std::string& format, int microseconds) {
  std::string out;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%' || i + 1 == format.size()) {
      out.push_back(format[i]);
      continue;
    }
    char c = format[++i];
    if (c == 'f') {
      char digits[16];
      std::snprintf(digits, sizeof(digits), "%06d", microseconds);
      out.append(digits);
    } else if (c != 'z' && c != 'Z') {
      out.push_back('%');
      out.push_back(c);
    }
  }
  return out;
}

}  // namespace

std::string FormatNow(const std::string& format, const int64_t* now) {
  LocalTime time = Now(now);
  std::string expanded = ExpandOwn(format, time.microseconds);
  if (expanded.empty()) return expanded;
  // A blank in front tells an empty result from a buffer that is too small.
  expanded.insert(expanded.begin(), ' ');
  std::string out(expanded.size() * 4 + 64, '\0');
  while (out.size() < (size_t{1} << 20)) {
    size_t size = std::strftime(out.data(), out.size(), expanded.c_str(), &time.parts);
    if (size != 0) {
      out.resize(size);
      return out.substr(1);
    }
    out.resize(out.size() * 2);
  }
  return {};
}

}  // namespace portico::jinja
