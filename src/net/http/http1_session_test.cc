#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/sanitized_for_test.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kGet[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr char kGetB[] = "GET /b HTTP/1.1\r\nHost: x\r\n\r\n";

// The answer to a request after which the server closes.
std::string AskOnce(TestServer& server, std::string_view request) {
  TestClient client(server.port());
  client.Send(request);
  return client.ReadToEnd();
}

TEST(Http1, AnswersWithLengthTypeDateAndServer) {
  TestServer server;
  TestClient client(server.port());
  std::string answer = client.Ask(kGet);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\ncontent-length: 10\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\ncontent-type: text/plain\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\ndate: "));
  EXPECT_THAT(answer, HasSubstr("\r\nserver: portico\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("connection:")));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nGET /a? []"));
}

TEST(Http1, AnswersManyRequestsOnOneConnection) {
  TestServer server;
  TestClient client(server.port());
  for (int i = 0; i < 50; ++i) EXPECT_THAT(client.Ask(kGet), EndsWith("GET /a? []"));
  EXPECT_EQ(server.server().stats().accepted, 1u);
}

TEST(Http1, AnswersPipelinedRequestsInOrder) {
  TestServer server;
  TestClient client(server.port());
  std::string all;
  for (int i = 0; i < 500; ++i) {
    all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  std::thread sender([&] { client.Send(all); });
  for (int i = 0; i < 500; ++i) {
    EXPECT_THAT(client.ReadAnswer(), EndsWith("GET /" + std::to_string(i) + "? []"));
  }
  sender.join();
}

TEST(Http1, AnswersPipelinedRequestsInOrderWhenTheHandlerAnswersLater) {
  std::vector<std::unique_ptr<Exchange>> waiting;
  TestServer server([&](std::unique_ptr<Exchange> exchange) {
    EXPECT_TRUE(waiting.empty()) << "the next request came before the former was answered";
    Shard& shard = exchange->shard();
    waiting.push_back(std::move(exchange));
    shard.Post([&] {
      auto ready = std::move(waiting);
      waiting.clear();
      EchoHandler(std::move(ready.front()));
    });
  });
  TestClient client(server.port());
  // Far more than the read-ahead bound, so that reading pauses and goes on.
  std::string padding(4000, 'p');
  std::thread sender([&] {
    for (int i = 0; i < 200; ++i) {
      client.Send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\nX: " + padding +
                  "\r\n\r\n");
    }
  });
  for (int i = 0; i < 200; ++i) {
    EXPECT_THAT(client.ReadAnswer(), EndsWith("GET /" + std::to_string(i) + "? []"));
  }
  sender.join();
}

TEST(Http1, ReadsARequestSplitAtEveryByte) {
  TestServer server;
  std::string request =
      "POST /p%20q?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nX-A:  b c \r\n\r\nhello";
  for (size_t at = 1; at < request.size(); ++at) {
    TestClient client(server.port());
    client.Send(request.substr(0, at));
    std::this_thread::yield();
    client.Send(request.substr(at));
    ASSERT_THAT(client.ReadAnswer(), EndsWith("POST /p q?x=1 [hello]")) << at;
  }
}

TEST(Http1, ReadsARequestByteByByte) {
  TestServer server;
  TestClient client(server.port());
  std::string request =
      "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nT: "
      "v\r\n\r\n";
  for (int round = 0; round < 3; ++round) {
    for (char c : request) client.Send(std::string_view(&c, 1));
    EXPECT_THAT(client.ReadAnswer(), EndsWith("POST /p? [abcde]"));
  }
}

TEST(Http1, ReadsChunkedBodies) {
  TestServer server;
  TestClient client(server.port());
  std::string head = "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_THAT(client.Ask(head + "0\r\n\r\n"), EndsWith("POST /p? []"));
  EXPECT_THAT(client.Ask(head + "A\r\n0123456789\r\n0\r\n\r\n"), EndsWith("[0123456789]"));
  EXPECT_THAT(client.Ask(head + "000000003\r\nabc\r\n0\r\nX-T: 1\r\nContent-Type: y\r\n\r\n"),
              EndsWith("[abc]"));
  std::string big(200000, 'z');
  EXPECT_THAT(client.Ask(head + "186a0\r\n" + big.substr(0, 100000) + "\r\n186a0\r\n" +
                         big.substr(100000) + "\r\n0\r\n\r\n"),
              EndsWith("[" + big + "]"));
}

TEST(Http1, RefusesMalformedChunks) {
  TestServer server;
  std::string head = "POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* body :
       {"x\r\n", "-1\r\nabc\r\n", "3\r\nabcd\r\n0\r\n\r\n", "10000000000000000\r\n", "\r\n\r\n",
        "3 \nabc\r\n", "3\nabc\r\n0\r\n\r\n", "0x3\r\nabc\r\n0\r\n\r\n", "0\r\nBad Name: 1\r\n\r\n",
        "0x3\r\n", "3;\x01\r\n", "3;a=\"\n"}) {
    std::string answer = AskOnce(server, head + body);
    EXPECT_EQ(StatusOf(answer), "HTTP/1.1 400") << body;
    EXPECT_THAT(answer, HasSubstr("connection: close\r\n"));
  }
  EXPECT_EQ(StatusOf(AskOnce(server, head + "3;" + std::string(100000, 'e'))), "HTTP/1.1 400");
  EXPECT_EQ(StatusOf(AskOnce(server, head + "ffffffff\r\nabc")), "HTTP/1.1 413");
}

TEST(Http1, RefusesWhatCouldSmuggleARequest) {
  TestServer server;
  for (const char* fields : {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                             "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                             "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                             "Content-Length: 5\r\nContent-Length: 6\r\n",
                             "Content-Length: 5, 6\r\n",
                             "Content-Length: 5\r\nContent-Length: 5\r\n",
                             "Content-Length: 5, 5\r\n",
                             "X: a\r\n b\r\nContent-Length: 5\r\n",
                             "X: a\r\n\tContent-Length: 5\r\n",
                             " X: a\r\nContent-Length: 5\r\n",
                             "X: a\r\n \r\nContent-Length: 5\r\n",
                             "Content-Length: -5\r\n",
                             "Content-Length: +5\r\n",
                             "Content-Length: 5x\r\n",
                             "Content-Length: 0x5\r\n",
                             "Content-Length: 99999999999999999999\r\n",
                             "Content-Length:\r\n",
                             "Content-Length : 5\r\n",
                             "X: a\nY: b\r\n",
                             "Content-Length: 5\rX: y\r\n",
                             "Host: other\r\n"}) {
    std::string request = std::string("POST / HTTP/1.1\r\nHost: h\r\n") + fields + "\r\nhello";
    EXPECT_EQ(StatusOf(AskOnce(server, request)), "HTTP/1.1 400") << fields;
  }
  for (const char* coding :
       {"gzip, chunked", "chunked, gzip", "identity", "xchunked", "chunked;q=1"}) {
    std::string request = std::string("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: ") +
                          coding + "\r\n\r\n0\r\n\r\n";
    EXPECT_EQ(StatusOf(AskOnce(server, request)), "HTTP/1.1 501") << coding;
  }
  EXPECT_EQ(
      StatusOf(AskOnce(server, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
      "HTTP/1.1 400");
}

TEST(Http1, RefusesMalformedHeads) {
  TestServer server;
  for (const char* head :
       {"GET  / HTTP/1.1\r\nHost: h\r\n\r\n", "get / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nBad Name: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", "GET / HTTP/1.1\nHost: h\n\n",
        "GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", "GET /%0 HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", "GET a HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost h\r\n\r\n", "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n"}) {
    std::string answer = AskOnce(server, head);
    EXPECT_EQ(StatusOf(answer), "HTTP/1.1 400") << head;
    EXPECT_THAT(answer, HasSubstr("content-type: text/plain")) << head;
  }
  EXPECT_EQ(StatusOf(AskOnce(server, "GET / HTTP/1.1 \r\nHost: h\r\n\r\n")), "HTTP/1.1 505");
  EXPECT_EQ(StatusOf(AskOnce(server, "GET / HTTP/2.0\r\nHost: h\r\n\r\n")), "HTTP/1.1 505");
  EXPECT_EQ(StatusOf(AskOnce(server, "CONNECT a:1 HTTP/1.1\r\nHost: h\r\n\r\n")), "HTTP/1.1 501");
}

TEST(Http1, RefusesAHeadOverItsLimit) {
  TestServer server;
  std::string line = "GET /" + std::string(70000, 'a');
  EXPECT_EQ(StatusOf(AskOnce(server, line)), "HTTP/1.1 431");
  std::string field = "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(70000, 'a') + "\r\n\r\n";
  EXPECT_EQ(StatusOf(AskOnce(server, field)), "HTTP/1.1 431");
  std::string fields = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 300; ++i) fields += "X: y\r\n";
  EXPECT_EQ(StatusOf(AskOnce(server, fields + "\r\n")), "HTTP/1.1 431");
  TestClient client(server.port());
  std::string fits = "GET / HTTP/1.1\r\nHost: h\r\nX: " + std::string(60000, 'a') + "\r\n\r\n";
  EXPECT_EQ(StatusOf(client.Ask(fits)), "HTTP/1.1 200");
}

TEST(Http1, RefusesABodyOverItsLimitDeclaredOrSent) {
  ServerOptions options;
  options.max_body_bytes = 100000;
  TestServer server(EchoHandler, options);
  EXPECT_EQ(
      StatusOf(AskOnce(server, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100001\r\n\r\n")),
      "HTTP/1.1 413");
  // A client that is still sending when the answer comes must be able to read it.
  EXPECT_EQ(
      StatusOf(AskOnce(server, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3000000\r\n\r\n" +
                                   std::string(3000000, 'x'))),
      "HTTP/1.1 413");
  std::string chunks = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 30; ++i) chunks += "1000\r\n" + std::string(4096, 'x') + "\r\n";
  EXPECT_EQ(StatusOf(AskOnce(server, chunks)), "HTTP/1.1 413");
  TestClient client(server.port());
  std::string body(100000, 'y');
  EXPECT_THAT(client.Ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n" + body),
              EndsWith("[" + body + "]"));
}

TEST(Http1, SaysContinueToAClientThatWaitsForIt) {
  TestServer server;
  TestClient client(server.port());
  client.Send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.Send("ok");
  EXPECT_THAT(client.ReadAnswer(), EndsWith("POST /? [ok]"));
  // Not to one that does not wait, and never when the body is refused.
  EXPECT_THAT(client.Ask("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: "
                         "100-continue\r\n\r\nok"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(StatusOf(AskOnce(server,
                             "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: "
                             "99999999\r\nExpect: 100-continue\r\n\r\n")),
            "HTTP/1.1 413");
  EXPECT_EQ(StatusOf(AskOnce(server,
                             "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: "
                             "tea\r\n\r\n")),
            "HTTP/1.1 417");
}

TEST(Http1, ClosesAfterAnsweringHttp10UnlessAskedToStay) {
  TestServer server;
  std::string answer = AskOnce(server, "GET /a HTTP/1.0\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("GET /a? []"));
  TestClient client(server.port());
  std::string kept = "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  EXPECT_THAT(client.Ask(kept), HasSubstr("connection: keep-alive\r\n"));
  EXPECT_THAT(client.Ask(kept), EndsWith("GET /a? []"));
  EXPECT_THAT(AskOnce(server, "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"),
              HasSubstr("connection: close\r\n"));
}

TEST(Http1, AnswersHeadWithoutABody) {
  TestServer server;
  TestClient client(server.port());
  client.Send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("content-length: 11\r\n"));
  EXPECT_THAT(client.Ask(kGetB), EndsWith("GET /b? []"));
}

TEST(Http1, TellsTheLengthThatGetWouldHave) {
  // A relayed answer to HEAD had no body, and a length of 0.
  TestServer server([](std::unique_ptr<Exchange> exchange) {
    HttpResponse response;
    response.head_length = 8;
    if (exchange->request.method == "GET") response.body = "123";
    exchange->Respond(std::move(response));
  });
  TestClient client(server.port());
  client.Send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), HasSubstr("content-length: 8\r\n"));
  EXPECT_THAT(client.Ask(kGetB), EndsWith("\r\n\r\n123"));
}

TEST(Http1, TakesAbsoluteTargetsOptionsAndEmptyLinesBetweenRequests) {
  TestServer server;
  TestClient client(server.port());
  EXPECT_THAT(client.Ask("GET http://x:80/a/b?c=d HTTP/1.1\r\nHost: x\r\n\r\n"),
              EndsWith("GET /a/b?c=d []"));
  EXPECT_THAT(client.Ask("GET http://x?c HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("GET /?c []"));
  EXPECT_THAT(client.Ask("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("OPTIONS *? []"));
  EXPECT_THAT(client.Ask("\r\n\r\nGET /%e4%BD%A0/x HTTP/1.1\r\nHost: x\r\n\r\n"),
              EndsWith("GET /\xe4\xbd\xa0/x? []"));
}

TEST(Http1, GivesHeaderNamesInLowerCaseAndThePeer) {
  TestServer server([](std::unique_ptr<Exchange> exchange) {
    HttpResponse response;
    response.body = std::string(exchange->request.Header("x-thing")) + "|" + exchange->request.peer;
    exchange->Respond(std::move(response));
  });
  TestClient client(server.port());
  EXPECT_THAT(client.Ask("GET / HTTP/1.1\r\nHost: x\r\nX-ThInG: \t v w \r\n\r\n"),
              HasSubstr("\r\n\r\nv w|127.0.0.1:"));
}

TEST(Http1, LeavesOutHeadersThatWouldForgeOthers) {
  TestServer server([](std::unique_ptr<Exchange> exchange) {
    HttpResponse response;
    response.headers = {
        {"x-a", "1\r\nx-evil: 2"}, {"x-b", "3"}, {"x-c", "\rx-evil: 2"}, {"x-d", "\nx-evil: 2"}};
    exchange->Respond(std::move(response));
  });
  TestClient client(server.port());
  std::string answer = client.Ask(kGet);
  EXPECT_THAT(answer, Not(HasSubstr("x-evil")));
  EXPECT_THAT(answer, HasSubstr("\r\nx-b: 3\r\n"));
}

TEST(Http1, AnswersAnExchangeThatItsHandlerDropsWith500) {
  ServerOptions options;
  options.write_error = [](const HttpError& error) {
    return std::to_string(error.status) + ": " + error.message;
  };
  TestServer server([](std::unique_ptr<Exchange>) {}, options);
  TestClient client(server.port());
  EXPECT_THAT(client.Ask(kGet), StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(client.Ask(kGet), HasSubstr("500: the request was dropped without an answer"));
}

TEST(Http1, SurvivesARandomThousandOfGarbageHeads) {
  TestServer server;
  std::mt19937 random(20261121);
  const std::string pieces[] = {
      "GET ",     "/",          " HTTP/1.1", "\r\n",     "Host: x", "Content-Length: ",
      "9",        "\r\n\r\n",   ":",         "chunked",  "\0",      "Transfer-Encoding: ",
      "Expect: ", "PRI * HTTP", "%4",        "\xff\xfe", "\n",      "0"};
  for (int i = 0; i < RandomRounds(1000); ++i) {
    std::string head;
    for (int n = static_cast<int>(random() % 12); n >= 0; --n) {
      if (random() % 4 == 0) {
        head.push_back(static_cast<char>(random()));
      } else {
        head += pieces[random() % std::size(pieces)];
      }
    }
    TestClient client(server.port());
    client.Send(head);
    if (i % 2 == 0) client.HalfClose();
    if (i % 2 == 0) client.ReadToEnd();
  }
  TestClient client(server.port());
  EXPECT_THAT(client.Ask(kGet), EndsWith("GET /a? []"));
  TestServer::WaitFor([&] { return server.open() == 1; });
}

}  // namespace
}  // namespace portico::net
