// What is decided at the head of a request, over both protocols.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>

#include "net/http2/http2_test_client.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr size_t kMiB = 1 << 20;

// Refuses what asks for /no, limits /few to 10 bytes, and counts what reaches the handler.
struct Refusing {
  ServerOptions Options() {
    ServerOptions options;
    options.check_head = [](HttpRequest& head) {
      HeadVerdict verdict;
      if (head.path == "/no") {
        verdict.refusal.emplace();
        verdict.refusal->status = 403;
        verdict.refusal->body = "no";
      }
      if (head.path == "/few") verdict.max_body_bytes = 10;
      return verdict;
    };
    return options;
  }
  Handler Handle() {
    return [this](std::unique_ptr<Exchange> exchange) {
      ++handled;
      EchoHandler(std::move(exchange));
    };
  }
  std::atomic<int> handled{0};
};

std::string Post(const std::string& path, size_t length, const std::string& more = "") {
  return "POST " + path + " HTTP/1.1\r\nHost: h\r\n" + more +
         "Content-Length: " + std::to_string(length) + "\r\n\r\n";
}

TEST(HeadCheck, ARefusedHeadIsAnsweredBeforeItsBodyComes) {
  Refusing refusing;
  TestServer server(refusing.Handle(), refusing.Options());
  TestClient client(server.port());
  EXPECT_EQ(StatusOf(client.Ask(Post("/no", 30 * kMiB))), "HTTP/1.1 403");
  EXPECT_EQ(client.ReadToEnd(), "");  // closed, without a byte of the body
  EXPECT_EQ(refusing.handled, 0);
}

TEST(HeadCheck, AConnectionStaysWhereTheRefusedBodyIsShort) {
  Refusing refusing;
  TestServer server(refusing.Handle(), refusing.Options());
  TestClient client(server.port());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(StatusOf(client.Ask(Post("/no", 5))), "HTTP/1.1 403");
    client.Send("hel");
    client.Send("lo" + Post("/yes", 2) + "ab");
    EXPECT_THAT(client.ReadAnswer(), EndsWith("POST /yes? [ab]"));
  }
  // All at once.
  client.Send(Post("/no", 5) + "hello" + Post("/no", 0) + Post("/yes", 2) + "cd");
  EXPECT_EQ(StatusOf(client.ReadAnswer()), "HTTP/1.1 403");
  EXPECT_EQ(StatusOf(client.ReadAnswer()), "HTTP/1.1 403");
  EXPECT_THAT(client.ReadAnswer(), EndsWith("[cd]"));
  EXPECT_EQ(refusing.handled, 4);
}

TEST(HeadCheck, ARefusedBodyThatDoesNotComeClosesTheConnection) {
  Refusing refusing;
  TestServer server(refusing.Handle(), refusing.Options());
  TestClient client(server.port());
  EXPECT_EQ(StatusOf(client.Ask(Post("/no", 5) + "he")), "HTTP/1.1 403");
  EXPECT_EQ(client.ReadToEnd(), "");
}

// A client that waits for 100 may send its body or not: what follows could be either.
TEST(HeadCheck, ARefusalOfAnExpectationOrOfChunksClosesTheConnection) {
  Refusing refusing;
  TestServer server(refusing.Handle(), refusing.Options());
  for (const std::string& head :
       {Post("/no", 5, "Expect: 100-continue\r\n"),
        std::string("POST /no HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n")}) {
    TestClient client(server.port());
    const std::string answer = client.Ask(head);
    EXPECT_EQ(StatusOf(answer), "HTTP/1.1 403");
    EXPECT_THAT(answer, HasSubstr("connection: close"));
    EXPECT_EQ(client.ReadToEnd(), "");
  }
}

TEST(HeadCheck, ARouteMayTakeShorterBodiesThanTheServer) {
  Refusing refusing;
  TestServer server(refusing.Handle(), refusing.Options());
  TestClient client(server.port());
  const std::string chunked = "POST /few HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_THAT(client.Ask(chunked + "a\r\n0123456789\r\n0\r\n\r\n"), EndsWith("[0123456789]"));
  EXPECT_EQ(StatusOf(client.Ask(chunked + "b\r\n0123456789x\r\n0\r\n\r\n")), "HTTP/1.1 413");
  Http2TestClient other(server.port());
  EXPECT_EQ(other.Ask("POST", "/few", {}, "0123456789").status, 200);
  EXPECT_EQ(other.Ask("POST", "/few", {}, "0123456789x").status, 413);
}

TEST(HeadCheck, AnHttp2StreamIsRefusedAtItsHead) {
  Refusing refusing;
  TestServer server(refusing.Handle(), refusing.Options());
  Http2TestClient client(server.port());
  const int stream = client.Send("POST", "/no", {}, "", /*end=*/false);
  EXPECT_EQ(client.Wait(stream).status, 403);
  EXPECT_EQ(client.Ask("POST", "/yes", {}, "ab").body, "POST /yes? [ab]");
  EXPECT_EQ(refusing.handled, 1);
}

// 40 connections held 1.2 GB.
TEST(HeadCheck, BodiesOfAllConnectionsShareABudget) {
  ServerOptions options;
  options.load = std::make_shared<ServerLoad>(4 * kMiB);
  TestServer server(EchoHandler, options);
  TestClient first(server.port());
  first.Send(Post("/a", 3 * kMiB) + std::string(3 * kMiB - 1, 'a'));
  TestServer::WaitFor([&] { return options.load->bodies->taken() >= 3 * kMiB - 1; });
  TestClient second(server.port());
  const std::string refused = second.Ask(Post("/b", 2 * kMiB));
  EXPECT_EQ(StatusOf(refused), "HTTP/1.1 503");
  EXPECT_THAT(refused, HasSubstr("retry-after: "));
  TestClient chunked(server.port());
  chunked.Send("POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" +
               std::string(2 * kMiB, 'c'));
  EXPECT_EQ(StatusOf(chunked.ReadAnswer()), "HTTP/1.1 503");
  Http2TestClient http2(server.port());
  EXPECT_EQ(http2.Ask("POST", "/d", {}, std::string(2 * kMiB, 'd')).status, 503);
  const int declared = http2.Send("POST", "/e", {{"content-length", "2097152"}}, "", /*end=*/false);
  EXPECT_EQ(http2.Wait(declared).status, 503);
  // Small ones are answered, and so is the one that had its part.
  EXPECT_THAT(TestClient(server.port()).Ask(Post("/f", 2) + "ok"), EndsWith("[ok]"));
  EXPECT_EQ(StatusOf(first.Ask("a")), "HTTP/1.1 200");
  EXPECT_EQ(options.load->bodies->refused(), 4u);
  first.Close();
  TestServer::WaitFor([&] { return options.load->bodies->taken() == 0; });
}

}  // namespace
}  // namespace portico::net
