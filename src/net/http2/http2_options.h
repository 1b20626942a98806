// What an HTTP/2 connection may do, beside the limits that all protocols share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace portico::net {

struct Http2Options {
  bool enabled = true;  // false: no ALPN h2, and the preface closes the connection
  uint32_t max_concurrent_streams = 1024;
  // What a client may send ahead of us.
  uint32_t stream_window = 256 << 10;
  uint32_t connection_window = 1 << 20;
  // A client with open streams that has sent nothing for keepalive_time is pinged, and cut off if it
  // does not answer within keepalive_timeout. Zero: never.
  Duration keepalive_time = std::chrono::seconds(60);
  Duration keepalive_timeout = std::chrono::seconds(20);
  // After this age (a tenth more or less) a connection takes no new streams; those that run may go
  // on for max_age_grace. Zero: no limit.
  Duration max_age = Duration::zero();
  Duration max_age_grace = Duration::zero();
};

}  // namespace portico::net
