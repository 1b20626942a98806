// gRPC on a server's ports. Keepalive, connection age and the number of streams are HTTP/2's
// (http2_options.h).
#pragma once

#include <cstddef>
#include <functional>

#include "base/clock.h"
#include "base/status.h"

namespace portico::net {

class GrpcCall;
class GrpcMethods;

struct GrpcOptions {
  // Outlives the server. Null: there is no gRPC, its requests get HTTP status 415.
  const GrpcMethods* methods = nullptr;
  // Of a message, whole and unpacked; more: RESOURCE_EXHAUSTED.
  size_t max_message_bytes = 64 << 20;
  // Asked on the shard when a call's head has come and its method is known; a status that is not OK
  // is the answer. May be null.
  std::function<Status(const GrpcCall& call)> admit;
  // Called on the shard when a call has ended: its status is written, or its client has left
  // (CANCELLED). `bytes` counts the messages of the answer with their prefixes. May be null.
  std::function<void(const GrpcCall& call, StatusCode code, size_t bytes, Duration took)>
      on_complete;
};

}  // namespace portico::net
