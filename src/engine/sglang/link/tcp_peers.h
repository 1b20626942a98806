// Who is connected to TCP ports of this machine, by the kernel's tables of connections: on the loopback every user can
// connect, and a peer's address says nothing of whose it is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"

namespace portico::sglang {

enum class PeerUsers {
  kOne,      // at least one process is connected, and all are that user's
  kOthers,   // another user's process is connected, or about to be
  kUnclear,  // nobody is connected, or the other end of a connection is not shown (yet)
};

// Tells once that it has been unclear for ten seconds who connects: for a moment that is how every connection begins.
class UnclearPeers {
 public:
  // What was found when a peer asked. True: now.
  bool Add(PeerUsers found, TimePoint now);

 private:
  TimePoint since_{};  // the first of those that were all unclear
  TimePoint last_{};
  bool told_ = false;
};

// Whose processes are connected to those ports of this machine. `tables`: /proc/net/tcp and /proc/net/tcp6.
PeerUsers UsersConnected(std::string_view tables, const std::vector<uint16_t>& ports, uid_t user);

// The same of now, and of this process's user.
PeerUsers OwnUserConnected(const std::vector<uint16_t>& ports);

// Whether the tables of this process's network show a listener of this user at each of the ports: else they would not
// show who connects.
bool ListenersAreVisible(const std::vector<uint16_t>& ports);

// Whether the peer of that IP address may connect to sockets that listen at these addresses (net/zmq/zmq_guard.h). On the
// loopback: while nobody else is connected to any of them. Elsewhere: if SGLANG_ZMQ_ALLOWED_PEERS lists the address, as in
// SGLang. FAILED_PRECONDITION: that cannot be told.
StatusOr<std::function<bool(std::string_view)>> AdmissionTo(
    const std::vector<std::string>& addresses);

}  // namespace portico::sglang
