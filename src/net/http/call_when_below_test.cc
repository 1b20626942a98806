// Exchange::CallWhenBelow() over HTTP/1.1: handlers that go on when their client has read again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net/http/exchange.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

constexpr char kAskForStream[] = "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr size_t kBlock = 100000;
constexpr size_t kBound = 200000;
constexpr size_t kFarBehind = 1000000;

// Keeps the last stream that was asked for; used on the shard only, but for the counts.
struct KeptStream {
  std::unique_ptr<Exchange> exchange;
  std::atomic<int> came{0};
  std::atomic<int> closed{0};
  std::atomic<int> called{0};

  Handler handler() {
    return [this](std::unique_ptr<Exchange> asked) {
      asked->StartStream({});
      asked->set_on_closed([this] {
        ++closed;
        exchange.reset();
      });
      exchange = std::move(asked);
      ++came;
    };
  }
  // Until so much waits for the client; the bytes written.
  size_t FallBehind(TestServer& server) {
    size_t written = 0;
    for (bool behind = false; !behind;) {
      server.OnShard([&] {
        behind = exchange->unsent_bytes() > kFarBehind;
        if (behind) return;
        exchange->Write(std::string(kBlock, 'b'));
        written += kBlock;
      });
    }
    return written;
  }
};

// A turn of the loop that began after this call, and what it led to.
void LetTurnsPass(TestServer& server) {
  for (int i = 0; i < 3; ++i) server.OnShard([] {});
}

TEST(CallWhenBelow, ComesOnceWhenTheClientHasReadAgain) {
  KeptStream kept;
  TestServer server(kept.handler());
  TestClient client(server.port(), 4096);
  client.Send(kAskForStream);
  TestServer::WaitFor([&] { return kept.came == 1; });
  const size_t written = kept.FallBehind(server);
  size_t left = 0;
  server.OnShard([&] {
    kept.exchange->CallWhenBelow(kBound, [&] {
      left = kept.exchange->unsent_bytes();
      ++kept.called;
    });
  });
  LetTurnsPass(server);
  EXPECT_EQ(kept.called, 0);
  client.Read(written - kBlock);
  TestServer::WaitFor([&] { return kept.called == 1; });
  EXPECT_LE(left, kBound);
  server.OnShard([&] { kept.exchange->Write("more"); });
  server.OnShard([&] { std::exchange(kept.exchange, nullptr)->End(); });
  client.ReadUntil("0\r\n\r\n");
  EXPECT_EQ(kept.called, 1);
}

TEST(CallWhenBelow, ComesInALaterTurnWhereLittleIsUnsent) {
  for (const bool writes : {false, true}) {
    KeptStream kept;
    TestServer server(kept.handler());
    TestClient client(server.port());
    client.Send(kAskForStream);
    TestServer::WaitFor([&] { return kept.came == 1; });
    server.OnShard([&] {
      if (writes) kept.exchange->Write("abc");
      kept.exchange->CallWhenBelow(0, [&] { ++kept.called; });
      EXPECT_EQ(kept.called, 0);
    });
    TestServer::WaitFor([&] { return kept.called == 1; });
    server.OnShard([&] { kept.exchange.reset(); });
  }
}

TEST(CallWhenBelow, IsReplacedByTheNextAndDroppedByNull) {
  KeptStream kept;
  TestServer server(kept.handler());
  TestClient client(server.port());
  client.Send(kAskForStream);
  TestServer::WaitFor([&] { return kept.came == 1; });
  std::atomic<int> never{0};
  server.OnShard([&] {
    kept.exchange->CallWhenBelow(0, [&] { ++never; });
    kept.exchange->CallWhenBelow(0, nullptr);
  });
  server.OnShard([&] {
    kept.exchange->CallWhenBelow(0, [&] { ++never; });
    kept.exchange->CallWhenBelow(0, [&] { ++kept.called; });
  });
  TestServer::WaitFor([&] { return kept.called == 1; });
  EXPECT_EQ(never, 0);
  server.OnShard([&] { kept.exchange.reset(); });
}

TEST(CallWhenBelow, DoesNotComeAfterTheEndOfTheAnswer) {
  for (const bool behind : {false, true}) {
    KeptStream kept;
    TestServer server(kept.handler());
    TestClient client(server.port(), 4096);
    client.Send(kAskForStream);
    TestServer::WaitFor([&] { return kept.came == 1; });
    if (behind) kept.FallBehind(server);
    server.OnShard([&] {
      kept.exchange->CallWhenBelow(kBound, [&] { ++kept.called; });
      kept.exchange->End();
      kept.exchange->CallWhenBelow(kBound, [&] { ++kept.called; });
    });
    client.ReadUntil("0\r\n\r\n");
    client.Send(kAskForStream);
    TestServer::WaitFor([&] { return kept.came == 2; });
    LetTurnsPass(server);
    EXPECT_EQ(kept.called, 0);
    server.OnShard([&] { kept.exchange.reset(); });
  }
}

TEST(CallWhenBelow, DoesNotComeWhenTheClientLeaves) {
  KeptStream kept;
  TestServer server(kept.handler());
  TestClient client(server.port(), 4096);
  client.Send(kAskForStream);
  TestServer::WaitFor([&] { return kept.came == 1; });
  kept.FallBehind(server);
  server.OnShard([&] { kept.exchange->CallWhenBelow(kBound, [&] { ++kept.called; }); });
  client.Reset();
  TestServer::WaitFor([&] { return kept.closed == 1; });
  TestServer::WaitFor([&] { return server.open() == 0; });
  LetTurnsPass(server);
  EXPECT_EQ(kept.called, 0);
}

TEST(CallWhenBelow, DoesNotComeForAClientThatNeverReads) {
  KeptStream kept;
  ServerOptions options;
  options.max_unsent_bytes = 2 * kFarBehind;
  TestServer server(kept.handler(), options);
  TestClient client(server.port(), 4096);
  client.Send(kAskForStream);
  TestServer::WaitFor([&] { return kept.came == 1; });
  kept.FallBehind(server);
  server.OnShard([&] { kept.exchange->CallWhenBelow(kBound, [&] { ++kept.called; }); });
  for (int i = 0; i < 1000 && kept.closed == 0; ++i) {
    server.OnShard([&] {
      if (kept.exchange != nullptr) kept.exchange->Write(std::string(kBlock, 'b'));
    });
  }
  EXPECT_EQ(kept.closed, 1);
  LetTurnsPass(server);
  EXPECT_EQ(kept.called, 0);
}

TEST(CallWhenBelow, MayDestroyTheExchange) {
  KeptStream kept;
  TestServer server(kept.handler());
  TestClient client(server.port(), 4096);
  client.Send(kAskForStream);
  TestServer::WaitFor([&] { return kept.came == 1; });
  kept.FallBehind(server);
  server.OnShard([&] {
    kept.exchange->CallWhenBelow(kBound, [&] {
      kept.exchange.reset();
      ++kept.called;
    });
  });
  EXPECT_THAT(client.ReadToEnd(), testing::Not(testing::EndsWith("0\r\n\r\n")));
  TestServer::WaitFor([&] { return server.open() == 0; });
  EXPECT_EQ(kept.called, 1);
  EXPECT_EQ(kept.closed, 0);
}

TEST(CallWhenBelow, MayWriteAndWaitAgain) {
  constexpr int kBlocks = 20;
  KeptStream kept;
  TestServer server(kept.handler());
  TestClient client(server.port(), 4096);
  client.Send(kAskForStream);
  TestServer::WaitFor([&] { return kept.came == 1; });
  size_t largest = 0;
  const std::function<void()> go_on = [&] {
    Exchange& exchange = *kept.exchange;
    largest = std::max(largest, exchange.unsent_bytes());
    if (kept.called++ == kBlocks) return std::exchange(kept.exchange, nullptr)->End();
    exchange.Write(std::string(kBlock, 'b'));
    exchange.CallWhenBelow(kBound, [&] { go_on(); });
  };
  server.OnShard(go_on);
  const std::string answer = client.ReadUntil("\r\n0\r\n\r\n");
  EXPECT_GE(std::count(answer.begin(), answer.end(), 'b'), ptrdiff_t{kBlocks * kBlock});
  EXPECT_LE(largest, kBound);
  EXPECT_EQ(kept.called, kBlocks + 1);
}

}  // namespace
}  // namespace portico::net
