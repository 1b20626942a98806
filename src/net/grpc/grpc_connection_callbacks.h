// The nghttp2 session behind a GrpcConnection.
#pragma once

#include <nghttp2/nghttp2.h>

#include <string_view>

#include "base/clock.h"
#include "net/grpc/grpc_client_call.h"

namespace portico::net {

class GrpcConnection;

// Throws only std::bad_alloc.
nghttp2_session* NewGrpcClient(GrpcConnection* connection);

struct GrpcRequestHead {
  bool tls;
  std::string_view authority;
  std::string_view user_agent;
  const GrpcCallOptions& options;  // metadata: encoded
  TimePoint deadline;
};

// The stream's id, or an error of nghttp2.
int32_t SubmitGrpcRequest(nghttp2_session* nghttp2, GrpcClientCall& call,
                          const GrpcRequestHead& head);

}  // namespace portico::net
