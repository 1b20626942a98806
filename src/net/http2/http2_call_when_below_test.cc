// Exchange::CallWhenBelow() and GrpcCall::CallWhenBelow() over HTTP/2, where each stream has its own backlog.
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "net/grpc/grpc_test_server.h"
#include "net/http2/http2_test_client.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

constexpr uint32_t kWindow = 1000;
constexpr size_t kWritten = 5000;

// Streams kWritten bytes of whatever is asked for, and counts by path who was called.
struct WaitingStreams {
  std::map<std::string, std::unique_ptr<Exchange>> exchanges;  // by path, on the shard
  std::atomic<int> open{0};
  std::atomic<int> closed{0};

  Handler handler() {
    return [this](std::unique_ptr<Exchange> exchange) {
      const std::string path = exchange->request.path;
      exchange->StartStream({});
      exchange->Write(std::string(kWritten, 's'));
      exchange->set_on_closed([this, path] {
        ++closed;
        exchanges.erase(path);
      });
      exchanges[path] = std::move(exchange);
      ++open;
    };
  }
};

TEST(Http2CallWhenBelow, ComesOnceForTheStreamThatIsReadAndNotForTheOneBesideIt) {
  WaitingStreams streams;
  TestServer server(streams.handler());
  Http2TestClient client(server.port(), kWindow);
  const int slow = client.Send("GET", "/slow");
  const int read = client.Send("GET", "/read");
  TestServer::WaitFor([&] { return streams.open == 2; });
  std::atomic<int> slow_called{0};
  std::atomic<int> read_called{0};
  server.OnShard([&] {
    streams.exchanges["/slow"]->CallWhenBelow(1000, [&] { ++slow_called; });
    streams.exchanges["/read"]->CallWhenBelow(1000, [&] { ++read_called; });
  });
  client.ReadUntil([&] { return client.answer(read).body.size() == kWindow; });
  client.Extend(read, 2000);
  client.ReadUntil([&] { return client.answer(read).body.size() == kWindow + 2000; });
  server.OnShard([] {});
  EXPECT_EQ(read_called, 0);
  client.Extend(read, 1000);
  TestServer::WaitFor([&] { return read_called == 1; });
  client.Extend(read, 1000);
  client.ReadUntil([&] { return client.answer(read).body.size() == kWritten; });
  EXPECT_EQ(slow_called, 0);
  client.Extend(slow, 4000);
  TestServer::WaitFor([&] { return slow_called == 1; });
  EXPECT_EQ(read_called, 1);
  server.OnShard([&] { streams.exchanges.clear(); });
}

TEST(Http2CallWhenBelow, DoesNotComeWhenTheStreamOrItsConnectionIsLost) {
  WaitingStreams streams;
  TestServer server(streams.handler());
  Http2TestClient client(server.port(), kWindow);
  const int reset = client.Send("GET", "/reset");
  client.Send("GET", "/lost");
  TestServer::WaitFor([&] { return streams.open == 2; });
  std::atomic<int> called{0};
  server.OnShard([&] {
    for (auto& [path, exchange] : streams.exchanges) {
      exchange->CallWhenBelow(1000, [&] { ++called; });
    }
  });
  client.Reset(reset);
  TestServer::WaitFor([&] { return streams.closed == 1; });
  client.socket().Close();
  TestServer::WaitFor([&] { return streams.closed == 2; });
  TestServer::WaitFor([&] { return server.open() == 0; });
  server.OnShard([] {});
  EXPECT_EQ(called, 0);
}

TEST(Http2CallWhenBelow, DoesNotComeAfterTheEndOfTheAnswer) {
  WaitingStreams streams;
  TestServer server(streams.handler());
  Http2TestClient client(server.port(), kWindow);
  const int ended = client.Send("GET", "/ended");
  const int cut = client.Send("GET", "/cut");
  TestServer::WaitFor([&] { return streams.open == 2; });
  std::atomic<int> called{0};
  server.OnShard([&] {
    for (auto& [path, exchange] : streams.exchanges) {
      // Far above what is unsent: it is on its way when the answer ends.
      exchange->CallWhenBelow(1 << 20, [&] { ++called; });
      path == "/cut" ? exchange->Cut() : exchange->End();
      exchange->CallWhenBelow(1 << 20, [&] { ++called; });
    }
  });
  client.Extend(ended, 4000);
  EXPECT_EQ(client.Wait(ended).body.size(), kWritten);
  EXPECT_EQ(client.Wait(cut).error, NGHTTP2_INTERNAL_ERROR);
  server.OnShard([&] { streams.exchanges.clear(); });
  EXPECT_EQ(called, 0);
}

TEST(Http2CallWhenBelow, DoesNotComeForAClientThatNeverReads) {
  WaitingStreams streams;
  ServerOptions options;
  options.max_unsent_bytes = 10000;
  TestServer server(streams.handler(), options);
  Http2TestClient client(server.port(), kWindow);
  const int id = client.Send("GET", "/slow");
  TestServer::WaitFor([&] { return streams.open == 1; });
  std::atomic<int> called{0};
  server.OnShard([&] { streams.exchanges["/slow"]->CallWhenBelow(1000, [&] { ++called; }); });
  server.OnShard([&] { streams.exchanges["/slow"]->Write(std::string(10000, 's')); });
  EXPECT_EQ(client.Wait(id).error, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_EQ(streams.closed, 1);
  server.OnShard([] {});
  EXPECT_EQ(called, 0);
}

TEST(Http2CallWhenBelow, MayDestroyTheExchange) {
  WaitingStreams streams;
  TestServer server(streams.handler());
  Http2TestClient client(server.port(), kWindow);
  const int id = client.Send("GET", "/dropped");
  TestServer::WaitFor([&] { return streams.open == 1; });
  server.OnShard([&] {
    streams.exchanges["/dropped"]->CallWhenBelow(1000, [&] { streams.exchanges.clear(); });
  });
  client.Extend(id, 3000);
  EXPECT_EQ(client.Wait(id).error, NGHTTP2_INTERNAL_ERROR);
  EXPECT_EQ(streams.closed, 0);
  client.Send("GET", "/next");
  TestServer::WaitFor([&] { return streams.open == 2; });
  server.OnShard([&] { streams.exchanges.clear(); });
}

TEST(Http2CallWhenBelow, AGrpcCallIsCalledToo) {
  GrpcMethods methods;
  std::unique_ptr<GrpcCall> kept;
  std::atomic<int> called{0};
  methods.Add("/test.Wait/Unary", [&](std::unique_ptr<GrpcCall> call, std::string) {
    call->Write(std::string(kWritten, 'm'));
    call->CallWhenBelow(1000, [&] {
      kept->Finish(OkStatus());
      kept.reset();
      ++called;
    });
    kept = std::move(call);
  });
  GrpcTestServer server(std::move(methods));
  Http2TestClient client(server.port(), kWindow);
  const int id = client.Send("POST", "/test.Wait/Unary", GrpcHead(), GrpcMessage("x"));
  client.ReadUntil([&] { return client.answer(id).body.size() == kWindow; });
  server->OnShard([] {});
  EXPECT_EQ(called, 0);
  client.Extend(id, 5000);
  EXPECT_EQ(CodeOf(client.Wait(id)), StatusCode::kOk);
  EXPECT_EQ(called, 1);
}

}  // namespace
}  // namespace portico::net
