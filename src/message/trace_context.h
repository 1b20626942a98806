// Which trace a request is part of (W3C Trace Context, level 1: https://www.w3.org/TR/trace-context/).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace portico {

struct TraceContext {
  uint64_t trace_high = 0;
  uint64_t trace_low = 0;
  uint64_t parent = 0;  // the caller's span
  uint8_t flags = 0;    // bit 0: sampled

  bool valid() const { return (trace_high | trace_low) != 0 && parent != 0; }
  bool sampled() const { return (flags & 1) != 0; }
};

// Reads a `traceparent` header. Absent for what the standard calls invalid: such a header is ignored.
std::optional<TraceContext> ParseTraceparent(std::string_view header);

// "00-<trace id>-<parent id>-<flags>". Requires valid().
std::string FormatTraceparent(const TraceContext& trace);

}  // namespace portico
