// The clock of strftime_now.
#pragma once

#include <cstdint>
#include <string>

namespace portico::jinja {

// datetime.now().strftime(format). `now`: seconds since the epoch, or null for the environment's PORTICO_FIXED_TIME
// (ISO 8601, local) and else the system's clock.
std::string FormatNow(const std::string& format, const int64_t* now);

}  // namespace portico::jinja
