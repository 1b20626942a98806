// How two hosts begin: each proves that it knows the shared token, and neither sends it.
//
//   stage host  kGreeting, 32 random bytes
//   server      kGreeting, 32 random bytes, HMAC-SHA256(token, "server" + both randoms)
//   stage host  '+' and HMAC-SHA256(token, "stage" + both randoms); or '-': wrong token, 'v': version
//
// Frames follow (frame.h). The stage host reads nothing else before. The frames themselves are
// neither secret nor sealed: that is TLS's.
#pragma once

#include <functional>
#include <string_view>

#include "base/status.h"
#include "net/socket/transport.h"

namespace portico::pipeline {

// The last character but one is the version of everything that is said on the connection.
inline constexpr std::string_view kGreeting = "portico stage 2\n";
inline constexpr size_t kMinToken = 16;

// What both ends must know; from the environment, so that no list of processes shows it.
inline constexpr char kTokenVariable[] = "PORTICO_STAGE_TOKEN";
// INVALID_ARGUMENT: shorter than kMinToken and not empty. Who listens on the way can try short ones.
Status CheckToken(std::string_view token);

// The socket of the transport, for poll(). Both give up after five seconds, or soon after `stopping`.
struct GreetingPeer {
  int fd = -1;
  net::Transport& transport;
  std::string_view token;  // empty on both sides: none
  const std::function<bool()>& stopping;
};

// UNAUTHENTICATED: the tokens differ. FAILED_PRECONDITION: another version, or something else.
// UNAVAILABLE: the connection is lost, or TLS failed.
Status GreetStageHost(const GreetingPeer& peer);
Status GreetServer(const GreetingPeer& peer);

}  // namespace portico::pipeline
