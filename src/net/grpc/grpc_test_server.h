// For tests: a server with gRPC methods, and what a raw HTTP/2 client says to it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/grpc/grpc_call.h"
#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_methods.h"
#include "net/grpc/grpc_wire.h"
#include "net/http2/http2_test_client.h"
#include "net/loop/test_server.h"

namespace portico::net {

inline std::string GrpcMessage(std::string_view message) {
  std::string framed;
  AppendGrpcMessage(message, &framed);
  return framed;
}

inline std::string GzippedGrpcMessage(std::string_view message) {
  std::string framed;
  AppendGrpcMessage(message, GrpcEncoding::kGzip, &framed);
  return framed;
}

inline Headers GrpcHead(Headers more = {}) {
  Headers head = {{"content-type", "application/grpc"}, {"te", "trailers"}};
  head.insert(head.end(), more.begin(), more.end());
  return head;
}

// A header of the head or, where it is not there, of the trailers.
inline std::string AnywhereIn(const Http2Answer& answer, std::string_view name) {
  std::string value = answer.Header(name);
  return value.empty() ? answer.Trailer(name) : value;
}

// Nothing where the client was not told.
inline std::optional<StatusCode> CodeOf(const Http2Answer& answer) {
  return ParseGrpcStatus(AnywhereIn(answer, "grpc-status"));
}

inline std::string GrpcMessageOf(const Http2Answer& answer) {
  return DecodeGrpcMessage(AnywhereIn(answer, "grpc-message"));
}

// The messages that have come, unpacked where they were compressed.
inline std::vector<std::string> MessagesOf(const Http2Answer& answer) {
  GrpcDeframer deframer(1 << 30);
  auto encoding = ParseGrpcEncoding(
      answer.Header("grpc-encoding").empty() ? "identity" : answer.Header("grpc-encoding"));
  EXPECT_TRUE(encoding.ok()) << encoding.status();
  if (encoding.ok()) deframer.SetEncoding(*encoding);
  std::vector<std::string> messages;
  std::string_view rest = answer.body;
  std::string_view message;
  while (deframer.Next(&rest, &message) == GrpcDeframer::Result::kMessage) {
    messages.emplace_back(message);
  }
  EXPECT_TRUE(deframer.status().ok()) << deframer.status();
  return messages;
}

// Has /test.Echo/Unary, which answers with the message in brackets, and /test.Echo/Stream, which
// does that for each of a stream.
class GrpcTestServer {
 public:
  explicit GrpcTestServer(ServerOptions options = {}, int shards = 1)
      : GrpcTestServer(GrpcMethods(), std::move(options), shards) {}
  explicit GrpcTestServer(GrpcMethods methods, ServerOptions options = {}, int shards = 1)
      : methods_(std::move(methods)) {
    methods_.Add("/test.Echo/Unary", [](std::unique_ptr<GrpcCall> call, std::string message) {
      call->Reply("[" + message + "]");
    });
    methods_.AddStreaming("/test.Echo/Stream", EchoStream);
    options.grpc.methods = &methods_;
    server_.emplace(EchoHandler, std::move(options), shards);
  }

  int port() const { return server_->port(); }
  TestServer& operator*() { return *server_; }
  TestServer* operator->() { return &*server_; }

 private:
  static void EchoStream(std::unique_ptr<GrpcCall> call) {
    // Owns itself until it ends, one way or the other.
    GrpcCall* self = call.release();
    self->set_on_closed([self](Status) { delete self; });
    self->Read([self](std::string message) { self->Write("[" + message + "]"); },
               [self] {
                 self->Finish(OkStatus());
                 delete self;
               });
  }

  GrpcMethods methods_;
  std::optional<TestServer> server_;
};

}  // namespace portico::net
