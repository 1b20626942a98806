// Requests whose handlers find no memory. Each ended the process.
#include "net/loop/out_of_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "net/grpc/grpc_test_server.h"
#include "net/http2/http2_test_client.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Finds no memory for /large, nor after the head of /stream.
void TakeTooMuch(std::unique_ptr<Exchange> exchange) {
  if (exchange->request.path == "/stream") exchange->StartStream({});
  if (exchange->request.path != "/small") throw std::bad_alloc();
  EchoHandler(std::move(exchange));
}

TEST(OutOfMemory, ARequestEndsWith503AndItsConnectionGoesOn) {
  TestServer server(TakeTooMuch);
  TestClient client(server.port());
  const std::string refused = client.Ask("GET /large HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(refused, HasSubstr("retry-after"));
  EXPECT_THAT(client.Ask("GET /small HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST(OutOfMemory, AStreamThatHasBegunIsCut) {
  TestServer server(TakeTooMuch);
  TestClient client(server.port());
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.ReadToEnd(), testing::Not(testing::EndsWith("0\r\n\r\n")));
  TestClient other(server.port());
  EXPECT_THAT(other.Ask("GET /small HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST(OutOfMemory, OneStreamOfAnHttp2ConnectionEndsAlone) {
  TestServer server(TakeTooMuch);
  Http2TestClient client(server.port());
  EXPECT_EQ(client.Ask("GET", "/large").status, 503);
  EXPECT_NE(client.Ask("GET", "/stream").error, 0u);
  EXPECT_EQ(client.Ask("GET", "/small").status, 200);
}

TEST(OutOfMemory, AGrpcCallEndsUnavailable) {
  GrpcMethods methods;
  methods.Add("/test.Large/Unary",
              [](std::unique_ptr<GrpcCall>, std::string) { throw std::bad_alloc(); });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port());
  EXPECT_EQ(CodeOf(client.Ask("POST", "/test.Large/Unary", GrpcHead(), GrpcMessage("x"))),
            StatusCode::kUnavailable);
  EXPECT_EQ(CodeOf(client.Ask("POST", "/test.Echo/Unary", GrpcHead(), GrpcMessage("x"))),
            StatusCode::kOk);
}

}  // namespace
}  // namespace portico::net
