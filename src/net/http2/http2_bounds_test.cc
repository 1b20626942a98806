// What the streams of one HTTP/2 connection may leave unread together, and who is cut off for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/http2/http2_test_client.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

constexpr size_t kMegabyte = 1 << 20;

// Streams whatever is asked for but /large, which is a whole answer of a mebibyte.
struct Streams {
  std::map<std::string, std::unique_ptr<Exchange>> exchanges;  // by path, on the shard
  std::atomic<int> open{0};
  std::atomic<int> cut{0};

  Handler handler() {
    return [this](std::unique_ptr<Exchange> exchange) {
      std::string path = exchange->request.path;
      HttpResponse response;
      if (path == "/large") {
        response.body = std::string(kMegabyte, 'w');
        return exchange->Respond(std::move(response));
      }
      exchange->StartStream(std::move(response));
      exchange->set_on_closed([this, path] {
        ++cut;
        exchanges.erase(path);
      });
      exchanges[path] = std::move(exchange);
      ++open;
    };
  }
  void Write(const std::string& path, size_t bytes) {
    if (exchanges.contains(path)) exchanges[path]->Write(std::string(bytes, 's'));
  }
};

ServerOptions Bound(size_t max_unsent_bytes) {
  ServerOptions options;
  options.max_unsent_bytes = max_unsent_bytes;
  return options;
}

// A slow stream was cut off because of an answer beside it that its client did not read.
TEST(Http2Bounds, AWholeAnswerThatNobodyReadsDoesNotCutTheStreamBesideIt) {
  Streams streams;
  TestServer server(streams.handler(), Bound(65536));
  Http2TestClient client(server.port(), /*window=*/1000);
  const int large = client.Send("GET", "/large");
  const int slow = client.Send("GET", "/slow");
  TestServer::WaitFor([&] { return streams.open == 1; });
  for (int i = 0; i < 5; ++i) server.OnShard([&] { streams.Write("/slow", 100); });
  client.ReadUntil([&] { return client.answer(slow).body.size() == 500; });
  EXPECT_FALSE(client.answer(slow).closed);
  EXPECT_FALSE(client.answer(large).closed);
  EXPECT_EQ(streams.cut, 0);
  server.OnShard([&] { streams.exchanges.clear(); });
}

// Small requests with large answers took a gigabyte until the send timeout.
TEST(Http2Bounds, AConnectionThatDoesNotReadItsAnswersGetsNoMoreOfThem) {
  Streams streams;
  TestServer server(streams.handler(), Bound(65536));
  Http2TestClient client(server.port(), /*window=*/1000);
  std::vector<int> ids;
  for (int i = 0; i < 80; ++i) ids.push_back(client.Send("GET", "/large"));
  const auto refused = [&] {
    return std::count_if(ids.begin(), ids.end(), [&](int id) { return client.answer(id).closed; });
  };
  client.ReadUntil([&] { return refused() >= 10 && client.answer(ids.back()).closed; });
  EXPECT_EQ(client.answer(ids.back()).error, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_FALSE(client.answer(ids.front()).closed);
}

TEST(Http2Bounds, OfStreamsThatAreTogetherOverTheBoundTheOneFurthestBehindIsCut) {
  Streams streams;
  TestServer server(streams.handler(), Bound(10000));
  Http2TestClient client(server.port(), /*window=*/1);
  std::map<std::string, int> ids;
  for (const char* path : {"/a", "/b", "/most", "/c", "/d", "/e"}) {
    ids[path] = client.Send("GET", path);
  }
  TestServer::WaitFor([&] { return streams.open == 6; });
  server.OnShard([&] {
    for (const auto& [path, id] : ids) streams.Write(path, path == "/most" ? 9000 : 7000);
  });
  EXPECT_EQ(client.Wait(ids["/most"]).error, NGHTTP2_ENHANCE_YOUR_CALM);
  EXPECT_EQ(streams.cut, 1);
  server.OnShard([&] {
    EXPECT_EQ(streams.exchanges.size(), 5u);
    streams.exchanges.clear();
  });
}

}  // namespace
}  // namespace portico::net
