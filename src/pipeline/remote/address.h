// Addresses of other hosts, and the sockets to them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "pipeline/blob.h"

namespace portico::pipeline {

struct HostPort {
  std::string host;  // a name or an address; IPv6 without its brackets
  std::string port;

  std::string Text() const;
};

// "10.0.0.2:7000", "gpu2:7000", "[::1]:7000". INVALID_ARGUMENT says what it must be.
StatusOr<HostPort> ParseHostPort(std::string_view text);

// Both sockets do not block. `loopback_only`: any other address is refused with PERMISSION_DENIED.

// Waits until the connection stands, for a few seconds at most; gives up soon after `stopping`.
StatusOr<Fd> ConnectTo(const HostPort& address, bool loopback_only,
                       const std::function<bool()>& stopping);
// `port` is the one it got.
StatusOr<Fd> ListenOn(const HostPort& address, bool loopback_only, int* port);

// What both ends want of a connection: no delay, and to be told when the other host is gone.
void TuneConnection(int socket);

// Waits for `events` of poll() until the deadline. False: it has passed, or `stopping`.
bool WaitFor(int fd, short events, TimePoint deadline, const std::function<bool()>& stopping);

}  // namespace portico::pipeline
