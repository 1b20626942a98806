// The listener, limits and time limits, draining, the door.
#include "net/loop/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

#include "net/loop/test_server.h"
#include "net/socket/protocol_door.h"

namespace portico::net {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kGetRoot[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

ServerOptions ShortWaits() {
  ServerOptions options;
  options.idle_timeout = options.head_timeout = options.body_timeout = options.send_timeout =
      std::chrono::milliseconds(60);
  return options;
}

TEST(Server, SaysThatThePortIsInUse) {
  TestServer first;
  Shard shard(0);
  shard.Start();
  ServerOptions options;
  options.port = first.port();
  auto second = Server::Start(options, {&shard}, EchoHandler);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(MessageOf(second.status()),
            "cannot listen on 127.0.0.1:" + std::to_string(first.port()) + ": the port is in use");
  options.host = "no such host";
  EXPECT_FALSE(Server::Start(options, {&shard}, EchoHandler).ok());
  options = {};
  options.port = 70000;
  EXPECT_FALSE(Server::Start(options, {&shard}, EchoHandler).ok());
}

TEST(Server, SpreadsConnectionsOverShards) {
  TestServer server(EchoHandler, {}, 3);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 9; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    EXPECT_THAT(clients.back()->Ask(kGetRoot), EndsWith("GET /a? []"));
  }
  EXPECT_EQ(server.server().stats().open, (std::vector<int>{3, 3, 3}));
}

TEST(Server, RefusesConnectionsOverTheLimitAndRecovers) {
  ServerOptions options;
  options.max_connections = 3;
  TestServer server(EchoHandler, options);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->Ask(kGetRoot);
  }
  {
    TestClient over(server.port());
    over.Send(kGetRoot);
    std::string answer = over.ReadToEnd();
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 503"));
    EXPECT_THAT(answer, HasSubstr("too many connections"));
    EXPECT_EQ(server.server().stats().refused, 1u);
  }
  clients.pop_back();
  TestServer::WaitFor([&] { return server.open() == 2; });
  TestClient again(server.port());
  EXPECT_THAT(again.Ask(kGetRoot), StartsWith("HTTP/1.1 200"));
}

TEST(Server, AcceptsAgainAfterTheProcessRanOutOfDescriptors) {
  // The accept loop of another server died for good here (CVE-2023-4785).
  TestServer server;
  TestClient probe(server.port());
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  int lowest = dup(probe.fd());
  close(lowest);
  rlimit few = {static_cast<rlim_t>(lowest) + 20, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  {
    std::vector<std::unique_ptr<TestClient>> clients;
    for (int i = 0; i < 40; ++i) clients.push_back(std::make_unique<TestClient>(server.port()));
    EXPECT_FALSE(clients.back()->connected());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  setrlimit(RLIMIT_NOFILE, &before);
  TestClient client(server.port());
  EXPECT_THAT(client.Ask(kGetRoot), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(probe.Ask(kGetRoot), StartsWith("HTTP/1.1 200"));
}

TEST(Server, ClosesIdleConnectionsQuietly) {
  TestServer server(EchoHandler, ShortWaits());
  TestClient fresh(server.port());
  EXPECT_EQ(fresh.ReadToEnd(), "");
  TestClient used(server.port());
  used.Ask(kGetRoot);
  EXPECT_EQ(used.ReadToEnd(), "");
  TestServer::WaitFor([&] { return server.open() == 0; });
}

TEST(Server, AnswersSlowHeadsAndBodiesWith408) {
  ServerOptions options;
  options.head_timeout = options.body_timeout = std::chrono::milliseconds(60);
  TestServer server(EchoHandler, options);
  TestClient head(server.port());
  head.Send("GET / HTTP/1.1\r\nHost: x\r\n");
  EXPECT_THAT(head.ReadToEnd(), StartsWith("HTTP/1.1 408"));
  TestClient body(server.port());
  body.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_THAT(body.ReadToEnd(), StartsWith("HTTP/1.1 408"));
  TestClient preface(server.port());
  preface.Send("PR");
  EXPECT_EQ(preface.ReadToEnd(), "");
}

TEST(Server, CutsAHeadThatComesInDripsOff) {
  ServerOptions options;
  options.head_timeout = std::chrono::milliseconds(60);
  TestServer server(EchoHandler, options);
  TestClient client(server.port());
  client.Send("GET / HTTP/1.1\r\nHost: x\r\n");
  std::atomic<bool> cut{false};
  std::thread dripping([&] {
    while (!cut) {
      client.Send("X: y\r\n");
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  EXPECT_THAT(client.ReadUntil("\r\n"), StartsWith("HTTP/1.1 408"));
  cut = true;
  dripping.join();
}

TEST(Server, CutsAClientOffThatTakesNothingOfItsAnswer) {
  ServerOptions options = ShortWaits();
  TestServer server(
      [](std::unique_ptr<Exchange> exchange) {
        HttpResponse response;
        response.body = std::string(30 << 20, 'x');
        exchange->Respond(std::move(response));
      },
      options);
  TestClient client(server.port(), 4096);
  client.Send(kGetRoot);
  TestServer::WaitFor([&] { return server.server().stats().accepted == 1; });
  TestServer::WaitFor([&] { return server.open() == 0; });
}

TEST(Server, ToleratesASlowAnswerLongerThanTheTimeouts) {
  TestServer server(
      [](std::unique_ptr<Exchange> exchange) {
        Shard& shard = exchange->shard();
        auto timer = std::make_shared<std::unique_ptr<Shard::Timer>>();
        auto later = [timer, held = std::move(exchange)]() mutable {
          EchoHandler(std::move(held));
        };
        *timer = shard.After(std::chrono::milliseconds(300), std::move(later));
      },
      ShortWaits());
  // A client that comes later than the limit finds its connection closed.
  TestServer::WaitFor(
      [&] { return TestClient(server.port()).Ask(kGetRoot).ends_with("GET /a? []"); });
}

TEST(Server, DrainsIdleConnectionsAtOnceAndOthersAfterTheirAnswer) {
  std::vector<std::unique_ptr<Exchange>> waiting;
  std::atomic<int> came{0};
  TestServer server([&](std::unique_ptr<Exchange> exchange) {
    if (exchange->request.path == "/a") return EchoHandler(std::move(exchange));
    waiting.push_back(std::move(exchange));
    ++came;
  });
  TestClient idle(server.port());
  idle.Ask(kGetRoot);
  TestClient busy(server.port());
  busy.Send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  TestClient halfway(server.port());
  halfway.Send("GET /a HTTP/1.1\r\n");
  TestServer::WaitFor([&] { return came == 1; });
  TestServer::WaitFor([&] { return server.server().stats().accepted == 3; });
  halfway.WaitUntilTaken();
  for (int i = 0; i < 3; ++i) server.OnShard([] {});  // its bytes are read

  std::promise<bool> drained;
  std::thread drain(
      [&] { drained.set_value(server.server().Drain(Clock::now() + std::chrono::seconds(60))); });
  EXPECT_EQ(idle.ReadToEnd(), "");
  idle.Close();
  halfway.Send("Host: x\r\n\r\n");
  EXPECT_THAT(halfway.ReadToEnd(), HasSubstr("connection: close\r\n"));
  halfway.Close();
  EXPECT_FALSE(TestClient(server.port()).connected());
  server.OnShard([&] {
    EchoHandler(std::move(waiting.front()));
    waiting.clear();
  });
  EXPECT_THAT(busy.ReadToEnd(), HasSubstr("connection: close\r\n"));
  busy.Close();
  EXPECT_TRUE(drained.get_future().get());
  drain.join();
}

// The port closed at once: a probe could not be told that the server drains.
TEST(Server, ProbesAreAnsweredWhileADrainWaitsAndDoNotProlongIt) {
  ServerOptions options;
  options.answers_while_draining = true;
  std::unique_ptr<Exchange> waiting;
  std::atomic<int> came{0};
  std::atomic<int> late{0};
  const auto handle = [&](std::unique_ptr<Exchange> exchange) {
    if (exchange->request.path == "/a") {
      late += exchange->request.late;
      return EchoHandler(std::move(exchange));
    }
    waiting = std::move(exchange);
    ++came;
  };
  TestServer server(handle, options);
  TestClient busy(server.port());
  busy.Send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  TestServer::WaitFor([&] { return came == 1; });
  EXPECT_THAT(TestClient(server.port()).Ask(kGetRoot), HasSubstr("200"));
  EXPECT_EQ(late, 0);
  std::promise<bool> drained;
  std::thread drain(
      [&] { drained.set_value(server.server().Drain(Clock::now() + std::chrono::seconds(60))); });
  TestServer::WaitFor([&] {
    TestClient probe(server.port());
    return probe.Ask(kGetRoot).find("connection: close\r\n") != std::string::npos && late > 0;
  });
  TestClient idle(server.port());  // stays, and says nothing
  server.OnShard([&] { EchoHandler(std::move(waiting)); });
  EXPECT_THAT(busy.ReadToEnd(), HasSubstr("connection: close\r\n"));
  busy.Close();
  EXPECT_TRUE(drained.get_future().get());
  drain.join();
  server.server().Stop();
  EXPECT_EQ(idle.ReadToEnd(), "");
}

// A stream's head, sent before the drain, had promised to keep the connection open; the client kept it too, and the
// drain waited for it until its deadline.
TEST(Server, DrainClosesAConnectionWhoseStreamBeganBeforeIt) {
  std::unique_ptr<Exchange> stream;
  std::atomic<bool> came{false};
  TestServer server([&](std::unique_ptr<Exchange> exchange) {
    stream = std::move(exchange);
    stream->StartStream({});
    stream->Write("first");
    came = true;
  });
  TestClient client(server.port());
  client.Send(kGetRoot);
  client.ReadUntil("first");
  TestServer::WaitFor([&] { return came.load(); });
  std::promise<bool> drained;
  std::thread drain(
      [&] { drained.set_value(server.server().Drain(Clock::now() + std::chrono::seconds(60))); });
  while (TestClient(server.port()).connected()) std::this_thread::yield();
  server.OnShard([] {});
  server.OnShard([&] {
    stream->End();
    stream.reset();
  });
  client.ReadToEnd();
  client.Close();
  EXPECT_TRUE(drained.get_future().get());
  drain.join();
}

TEST(Server, DrainGivesUpAtItsDeadlineAndStopClosesTheRest) {
  std::atomic<int> closed{0};
  std::vector<std::unique_ptr<Exchange>> waiting;
  std::atomic<int> came{0};
  TestServer server([&](std::unique_ptr<Exchange> exchange) {
    exchange->set_on_closed([&] { ++closed; });
    waiting.push_back(std::move(exchange));
    ++came;
  });
  TestClient client(server.port());
  client.Send(kGetRoot);
  TestServer::WaitFor([&] { return came == 1; });
  EXPECT_FALSE(server.server().Drain(Clock::now() + std::chrono::milliseconds(30)));
  EXPECT_EQ(closed, 0);
  server.server().Stop();
  EXPECT_EQ(closed, 1);
  EXPECT_EQ(client.ReadToEnd(), "");
  server.OnShard([&] { waiting.clear(); });
}

TEST(Server, StopsWithConnectionsInEveryState) {
  TestServer server([](std::unique_ptr<Exchange> exchange) {
    exchange->StartStream({});
    exchange->Write("x");
    Shard& shard = exchange->shard();
    shard.Post([held = std::move(exchange)] {});
  });
  std::vector<std::unique_ptr<TestClient>> clients;
  for (const char* bytes : {"", "P", "GET / HTTP/1.1\r\n", kGetRoot, "x",
                            "POST / HTTP/1.1\r\nHost: x\r\n"
                            "Content-Length: 5\r\n\r\nab"}) {
    clients.push_back(std::make_unique<TestClient>(server.port()));
    clients.back()->Send(bytes);
  }
  server.server().Stop();
  EXPECT_EQ(server.open(), 0);
}

TEST(Server, MayBeDestroyedAfterItsShardsOnceStopped) {
  // A failed start hung here: the owner had stopped the server, then the shards, and then destroyed the server.
  Shard shard(0);
  shard.Start();
  auto server = Server::Start({}, {&shard}, EchoHandler);
  ASSERT_TRUE(server.ok());
  (*server)->Stop();
  shard.Stop();
  (*server)->Stop();
  server->reset();
}

TEST(ProtocolDoor, TellsHttp2ByItsPrefaceAtEverySplit) {
  std::string_view preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  for (size_t n = 1; n <= preface.size(); ++n) {
    EXPECT_EQ(RecognizeProtocol(preface.substr(0, n)),
              n < 14 ? Protocol::kUndecided : Protocol::kHttp2);
  }
  EXPECT_EQ(RecognizeProtocol("POST"), Protocol::kUndecided);
  EXPECT_EQ(RecognizeProtocol("POST / HTTP/1.1\r\n"), Protocol::kHttp1);
  EXPECT_EQ(RecognizeProtocol("PRI /x HTTP/1.0\n"), Protocol::kHttp1);
  EXPECT_EQ(RecognizeProtocol("\r\n\r\nPRI * HTTP/2.0\r\n"), Protocol::kHttp1);
}

TEST(ProtocolDoor, LetsHttp1InWhenItsFirstBytesLookedLikeHttp2) {
  TestServer server;
  TestClient put(server.port());
  put.Send("P");
  server.OnShard([] {});
  EXPECT_THAT(put.Ask("UT /a HTTP/1.1\r\nHost: x\r\n\r\n"), EndsWith("PUT /a? []"));
}

TEST(ProtocolDoor, ClosesWhatSpeaksNeitherWithoutABytesAnswer) {
  ServerOptions without_http2;
  without_http2.http2.enabled = false;
  TestServer server(EchoHandler, without_http2);
  for (const char* first : {"\x16\x03\x01\x02", "{\"a\":1}", "  GET / HTTP/1.1\r\n\r\n",
                            "GET /\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "EHLO example.org\r\n",
                            "\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}) {
    TestClient client(server.port());
    client.Send(first);
    EXPECT_EQ(client.ReadToEnd(), "") << first;
  }
}

TEST(Server, ListensOnMorePortsToo) {
  int free_port = 0;
  {
    free_port = TestServer().port();
  }
  ServerOptions options;
  options.more_ports = {free_port};
  TestServer server(EchoHandler, options);
  for (int port : {server.port(), free_port}) {
    TestClient client(port);
    EXPECT_EQ(StatusOf(client.Ask("GET /a HTTP/1.1\r\nHost: x\r\n\r\n")), "HTTP/1.1 200");
  }
  server.server().StopAccepting();
  EXPECT_FALSE(TestClient(free_port).connected());
}

TEST(Server, SaysWhichOfItsPortsIsTaken) {
  TestServer first;
  Shard shard(0);
  shard.Start();
  ServerOptions options;
  options.more_ports = {first.port()};
  auto second = Server::Start(options, {&shard}, EchoHandler);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(MessageOf(second.status()),
            "cannot listen on 127.0.0.1:" + std::to_string(first.port()) + ": the port is in use");
  shard.Stop();
}

}  // namespace
}  // namespace portico::net
