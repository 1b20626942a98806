#include "message/trace_context.h"

#include <fmt/format.h>

#include <cstddef>

namespace portico {
namespace {

// 00-<32 hex>-<16 hex>-<2 hex>; later versions may go on after that.
constexpr size_t kWhole = 55;

// Lower-case hexadecimal only, as the standard has it.
bool ReadHex(std::string_view digits, uint64_t* value) {
  *value = 0;
  for (const char c : digits) {
    uint64_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<uint64_t>(c - 'a') + 10;
    } else {
      return false;
    }
    *value = *value << 4 | digit;
  }
  return true;
}

}  // namespace

std::optional<TraceContext> ParseTraceparent(std::string_view header) {
  if (header.size() < kWhole || header[2] != '-' || header[35] != '-' || header[52] != '-') {
    return std::nullopt;
  }
  TraceContext trace;
  uint64_t version = 0;
  uint64_t flags = 0;
  const bool hex =
      ReadHex(header.substr(0, 2), &version) && ReadHex(header.substr(3, 16), &trace.trace_high) &&
      ReadHex(header.substr(19, 16), &trace.trace_low) &&
      ReadHex(header.substr(36, 16), &trace.parent) && ReadHex(header.substr(53, 2), &flags);
  const bool length_fits =
      version == 0 ? header.size() == kWhole : header.size() == kWhole || header[kWhole] == '-';
  if (!hex || version == 0xff || !length_fits || !trace.valid()) return std::nullopt;
  trace.flags = static_cast<uint8_t>(flags);
  return trace;
}

std::string FormatTraceparent(const TraceContext& trace) {
  return fmt::format("00-{:016x}{:016x}-{:016x}-{:02x}", trace.trace_high, trace.trace_low,
                     trace.parent, trace.flags);
}

}  // namespace portico
