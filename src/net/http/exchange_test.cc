// Answers of both kinds, and clients that leave or do not read.
#include "net/http/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "base/mutex.h"
#include "base/touched_objects.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kGet[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

// Keeps the exchanges that come; used on the shard only, but for the counts.
struct Held {
  std::vector<std::unique_ptr<Exchange>> exchanges;
  std::atomic<int> came{0};
  std::atomic<int> closed{0};

  Handler handler() {
    return [this](std::unique_ptr<Exchange> exchange) {
      Exchange* raw = exchange.get();
      exchange->set_on_closed([this, raw] {
        ++closed;
        std::erase_if(exchanges, [raw](const auto& held) { return held.get() == raw; });
      });
      exchanges.push_back(std::move(exchange));
      ++came;
    };
  }
};

void StreamSome(Exchange& exchange, int writes, std::string_view bytes) {
  HttpResponse response;
  response.content_type = "text/event-stream";
  exchange.StartStream(std::move(response));
  for (int i = 0; i < writes; ++i) exchange.Write(bytes);
}

TEST(Exchange, StreamsChunksAndEnds) {
  TestServer server([](std::unique_ptr<Exchange> exchange) {
    StreamSome(*exchange, 2, "data: x\n\n");
    exchange->Write("");
    exchange->End();
  });
  TestClient client(server.port());
  client.Send(kGet);
  std::string head = client.ReadUntil("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("transfer-encoding: chunked\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("content-length")));
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "9\r\ndata: x\n\n\r\n9\r\ndata: x\n\n\r\n0\r\n\r\n");
  client.Send(kGet);
  EXPECT_THAT(client.ReadUntil("0\r\n\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST(Exchange, AWriteSaysThatItTouchesTheExchangeAndTheConnection) {
  std::atomic<size_t> touched_by_writes{0};
  TestServer server([&](std::unique_ptr<Exchange> exchange) {
    TouchedObjects touched;
    const TouchRecording recording(&touched);
    StreamSome(*exchange, 2, "data: x\n\n");
    touched_by_writes = touched.size();
    exchange->End();
  });
  TestClient client(server.port());
  client.Send(kGet);
  client.ReadUntil("0\r\n\r\n");
  EXPECT_EQ(touched_by_writes, 2u);
}

TEST(Exchange, StreamsToHttp10WithoutChunksUntilTheConnectionEnds) {
  TestServer server([](std::unique_ptr<Exchange> exchange) {
    StreamSome(*exchange, 2, "ab");
    exchange->End();
  });
  TestClient client(server.port());
  client.Send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  std::string answer = client.ReadToEnd();
  EXPECT_THAT(answer, HasSubstr("connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nabab"));
}

TEST(Exchange, StreamsNoBodyToHead) {
  TestServer server([](std::unique_ptr<Exchange> exchange) {
    StreamSome(*exchange, 2, "ab");
    exchange->End();
  });
  TestClient client(server.port());
  client.Send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\nHEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
}

TEST(Exchange, GivesAnAnswerWithoutContentNoBodyAndNoLength) {
  TestServer server([](std::unique_ptr<Exchange> exchange) {
    HttpResponse response;
    response.status = 204;
    response.body = "ignored";
    exchange->Respond(std::move(response));
  });
  TestClient client(server.port());
  client.Send(kGet);
  client.Send(kGet);
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), Not(HasSubstr("content-")));
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 204 No Content"));
}

TEST(Exchange, SendsWhatATurnWritesInOnePiece) {
  Held held;
  TestServer server(held.handler());
  TestClient client(server.port());
  client.Send(kGet);
  TestServer::WaitFor([&] { return held.came == 1; });
  server.OnShard([&] {
    StreamSome(*held.exchanges[0], 3, "abc");
    EXPECT_GT(held.exchanges[0]->unsent_bytes(), 9u);  // nothing has left yet
  });
  client.ReadUntil("\r\n\r\n");
  EXPECT_EQ(client.Read(24), "3\r\nabc\r\n3\r\nabc\r\n3\r\nabc\r\n");
  server.OnShard([&] {
    EXPECT_EQ(held.exchanges[0]->unsent_bytes(), 0u);
    held.exchanges[0]->End();
    held.exchanges.clear();
  });
  EXPECT_EQ(client.ReadUntil("0\r\n\r\n"), "0\r\n\r\n");
}

TEST(Exchange, TellsOnceThatTheClientLeftBeforeAWholeAnswer) {
  for (int how = 0; how < 3; ++how) {
    Held held;
    TestServer server(held.handler());
    TestClient client(server.port());
    client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx");
    TestServer::WaitFor([&] { return held.came == 1; });
    if (how == 0) client.Close();
    if (how == 1) client.Reset();
    if (how == 2) client.HalfClose();
    TestServer::WaitFor([&] { return held.closed == 1; });
    TestServer::WaitFor([&] { return server.open() == 0; });
    EXPECT_EQ(held.closed, 1);
  }
}

TEST(Exchange, TellsOnceThatTheClientLeftDuringAStream) {
  for (int how = 0; how < 3; ++how) {
    Held held;
    TestServer server(held.handler());
    TestClient client(server.port());
    client.Send(kGet);
    TestServer::WaitFor([&] { return held.came == 1; });
    server.OnShard([&] { StreamSome(*held.exchanges[0], 1, "abc"); });
    client.ReadUntil("abc\r\n");
    if (how == 0) client.Close();
    if (how == 1) client.Reset();
    if (how == 2) client.HalfClose();
    TestServer::WaitFor([&] { return held.closed == 1; });
    TestServer::WaitFor([&] { return server.open() == 0; });
    EXPECT_EQ(held.closed, 1);
  }
}

TEST(Exchange, NoticesAClientThatLeavesBehindMorePipelinedBytesThanAreRead) {
  for (bool reset : {false, true}) {
    Held held;
    TestServer server(held.handler());
    TestClient client(server.port());
    client.Send(kGet);
    TestServer::WaitFor([&] { return held.came == 1; });
    // A half-close behind more than the kernel takes has not come yet, so it cannot be noticed.
    client.Send(std::string(reset ? 300000 : 100000, 'x'));
    reset ? client.Reset() : client.HalfClose();
    TestServer::WaitFor([&] { return held.closed == 1; });
    TestServer::WaitFor([&] { return server.open() == 0; });
  }
}

TEST(Exchange, IgnoresWritesAfterTheClientLeft) {
  std::unique_ptr<Exchange> kept;
  std::atomic<int> closed{0};
  TestServer server([&](std::unique_ptr<Exchange> exchange) {
    exchange->set_on_closed([&] { ++closed; });
    kept = std::move(exchange);
  });
  TestClient client(server.port());
  client.Send(kGet);
  TestServer::WaitFor([&] { return server.server().stats().accepted == 1; });
  client.Close();
  TestServer::WaitFor([&] { return closed == 1; });
  TestServer::WaitFor([&] { return server.open() == 0; });
  server.OnShard([&] {
    StreamSome(*kept, 1, "abc");
    kept->End();
    kept->Respond({});
    EXPECT_EQ(kept->unsent_bytes(), 0u);
    kept.reset();
  });
  EXPECT_EQ(closed, 1);
}

TEST(Exchange, CutsAStreamThatItsHandlerDrops) {
  Held held;
  TestServer server(held.handler());
  TestClient client(server.port());
  client.Send(kGet);
  TestServer::WaitFor([&] { return held.came == 1; });
  server.OnShard([&] { StreamSome(*held.exchanges[0], 1, "abc"); });
  client.ReadUntil("abc\r\n");
  server.OnShard([&] { held.exchanges.clear(); });
  EXPECT_EQ(client.ReadToEnd(), "");  // the end of the connection, but not of the body
  EXPECT_EQ(held.closed, 0);
}

TEST(Exchange, CutsASlowReaderOffAtTheBound) {
  Held held;
  ServerOptions options;
  options.max_unsent_bytes = 1 << 20;
  TestServer server(held.handler(), options);
  TestClient client(server.port(), 4096);
  client.Send(kGet);
  TestServer::WaitFor([&] { return held.came == 1; });
  server.OnShard([&] { StreamSome(*held.exchanges[0], 0, ""); });
  std::string block(100000, 'b');
  size_t largest = 0;
  for (int i = 0; i < 1000 && held.closed == 0; ++i) {
    server.OnShard([&] {
      if (held.exchanges.empty()) return;
      held.exchanges[0]->Write(block);
      largest = std::max(largest, held.exchanges[0]->unsent_bytes());
    });
  }
  EXPECT_EQ(held.closed, 1);
  EXPECT_LT(largest, options.max_unsent_bytes + 2 * block.size());
}

// What is left to a later turn though the socket would take more is not the reader's fault.
TEST(Exchange, DoesNotCutAReaderWhoseSocketTakesMoreThanATurnWrites) {
  Held held;
  ServerOptions options;
  options.max_unsent_bytes = 1000;
  TestServer server(held.handler(), options);
  const std::string block(16 << 10, 'b');
  constexpr size_t kBlocks =
      90;  // two gathered writes are more than 1 MiB, and do not hold them all
  // The system may have less room at times, and the reader is behind indeed then.
  TestServer::WaitFor([&] {
    TestClient client(server.port());
    const int came = held.came;
    client.Send(kGet);
    TestServer::WaitFor([&] { return held.came == came + 1; });
    server.OnShard([&] { StreamSome(*held.exchanges.back(), kBlocks, block); });
    // After it has been written, and in the turn that may come before what was put off is written.
    server.OnShard([&] {
      if (!held.exchanges.empty()) held.exchanges.back()->Write("more");
    });
    server.OnShard([&] {
      if (!held.exchanges.empty()) std::exchange(held.exchanges, {}).back()->End();
    });
    const std::string got = client.ReadUntil("0\r\n\r\n");
    return got.ends_with("4\r\nmore\r\n0\r\n\r\n");
  });
}

TEST(Exchange, SendsAHugeAnswerToASlowReaderWhole) {
  ServerOptions options;
  options.max_unsent_bytes = 1 << 20;
  std::string body(50 << 20, 'h');
  body.back() = '!';
  TestServer server(
      [&](std::unique_ptr<Exchange> exchange) {
        HttpResponse response;
        response.body = body;
        exchange->Respond(std::move(response));
      },
      options);
  TestClient client(server.port(), 65536);
  client.Send(kGet);
  client.Send(kGet);
  for (int i = 0; i < 2; ++i) {
    client.ReadUntil("\r\n\r\n");
    EXPECT_TRUE(client.Read(body.size()) == body);
  }
}

TEST(Exchange, MakesAClientThatPipelinesReadItsAnswers) {
  std::atomic<int> answered{0};
  std::string body(200000, 'b');
  TestServer server([&](std::unique_ptr<Exchange> exchange) {
    HttpResponse response;
    response.body = body;
    exchange->Respond(std::move(response));
    ++answered;
  });
  TestClient client(server.port(), 4096);
  std::string all;
  for (int i = 0; i < 500; ++i) all += kGet;
  client.Send(all);
  TestServer::WaitFor([&] { return answered > 0; });
  server.OnShard([] {});
  server.OnShard([] {});
  EXPECT_LT(answered, 100);  // not 100 MB in memory
  for (int i = 0; i < 500; ++i) {
    client.ReadUntil("\r\n\r\n");
    ASSERT_EQ(client.Read(body.size()).size(), body.size()) << i;
  }
}

TEST(Exchange, ReportsCompletionsForTheAccessLog) {
  Mutex mutex;
  std::map<std::string, std::pair<int, size_t>> seen;
  ServerOptions options;
  options.on_complete = [&](const HttpRequest& request, int status, size_t bytes, Duration took) {
    const MutexLock lock(&mutex);
    EXPECT_GE(took, Duration::zero());
    seen[request.path] = {status, bytes};
  };
  std::unique_ptr<Exchange> kept;
  std::atomic<bool> is_kept{false};
  TestServer server(
      [&](std::unique_ptr<Exchange> exchange) {
        if (exchange->request.path == "/whole") {
          EchoHandler(std::move(exchange));
        } else if (exchange->request.path == "/stream") {
          StreamSome(*exchange, 3, "abc");
          exchange->End();
        } else {
          kept = std::move(exchange);
          is_kept = true;
        }
      },
      options);
  TestClient client(server.port());
  client.Ask("GET /whole HTTP/1.1\r\nHost: x\r\n\r\n");
  client.Send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  client.ReadUntil("0\r\n\r\n");
  client.Send("GET /left HTTP/1.1\r\nHost: x\r\n\r\n");
  TestServer::WaitFor([&] { return is_kept.load(); });
  client.Close();
  TestServer::WaitFor([&] { return server.open() == 0; });
  server.OnShard([&] { kept.reset(); });
  const MutexLock lock(&mutex);
  EXPECT_EQ(seen["/whole"], std::make_pair(200, size_t{14}));
  EXPECT_EQ(seen["/stream"], std::make_pair(200, size_t{9}));
  EXPECT_EQ(seen["/left"], std::make_pair(499, size_t{0}));
}

}  // namespace
}  // namespace portico::net
