// WebSocket::CallWhenBelow(): senders that go on when their client has read again.
#include "net/websocket/web_socket.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "net/loop/test_server.h"

namespace portico::net {
namespace {

constexpr char kAskForSocket[] =
    "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
constexpr size_t kFrameBytes = 100000;
constexpr size_t kMostUnsent = 200000;

// A socket whose client is a mebibyte behind.
class BehindSocket {
 public:
  BehindSocket()
      : server_([this](std::unique_ptr<Exchange> exchange) {
          socket_ = WebSocket::Accept(std::move(exchange), WsOptions());
          socket_->set_on_closed([this] {
            ++closed;
            socket_.reset();
          });
        }),
        client_(server_.port(), 4096) {
    client_.Send(kAskForSocket);
    client_.ReadUntil("\r\n\r\n");
    for (bool behind = false; !behind;) {
      server_.OnShard([&] {
        behind = socket_->unsent_bytes() > 1 << 20;
        if (behind) return;
        socket_->SendBinary(std::string(kFrameBytes, 'f'));
        written_ += kFrameBytes;
      });
    }
  }
  ~BehindSocket() {
    server_.OnShard([this] { socket_.reset(); });
  }

  void Wait(std::function<void()> call) {
    server_.OnShard([&] {
      socket_->CallWhenBelow(kMostUnsent, [this, call = std::move(call)] {
        ++called;
        call();
      });
    });
  }
  void Drop() { socket_.reset(); }
  void Close() {
    server_.OnShard([this] { socket_->Close(kWsNormal, ""); });
  }
  TestServer& server() { return server_; }
  TestClient& client() { return client_; }
  size_t written() const { return written_; }

  std::atomic<int> closed{0};
  std::atomic<int> called{0};

 private:
  std::unique_ptr<WebSocket> socket_;  // on the shard
  size_t written_ = 0;
  TestServer server_;
  TestClient client_;
};

TEST(WebSocketCallWhenBelow, ComesOnceWhenTheClientHasReadAgain) {
  BehindSocket behind;
  behind.Wait([] {});
  behind.server().OnShard([] {});
  EXPECT_EQ(behind.called, 0);
  behind.client().Read(behind.written() - kFrameBytes);
  TestServer::WaitFor([&] { return behind.called == 1; });
  behind.client().Read(kFrameBytes);
  behind.server().OnShard([] {});
  EXPECT_EQ(behind.called, 1);
}

TEST(WebSocketCallWhenBelow, MayDestroyTheSocket) {
  BehindSocket behind;
  behind.Wait([&] { behind.Drop(); });
  behind.client().ReadToEnd();
  TestServer::WaitFor([&] { return behind.called == 1; });
  EXPECT_EQ(behind.closed, 0);
}

TEST(WebSocketCallWhenBelow, DoesNotComeAfterTheSocketHasClosed) {
  BehindSocket behind;
  behind.Wait([] {});
  behind.Close();
  behind.client().ReadToEnd();
  behind.client().Close();
  TestServer::WaitFor([&] { return behind.server().open() == 0; });
  EXPECT_EQ(behind.called, 0);
}

TEST(WebSocketCallWhenBelow, DoesNotComeWhenTheClientLeaves) {
  BehindSocket behind;
  behind.Wait([] {});
  behind.client().Reset();
  TestServer::WaitFor([&] { return behind.closed == 1; });
  TestServer::WaitFor([&] { return behind.server().open() == 0; });
  EXPECT_EQ(behind.called, 0);
}

}  // namespace
}  // namespace portico::net
