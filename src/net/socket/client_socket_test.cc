#include "net/socket/client_socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>
#include <memory>

#include "net/loop/run_on_shard_for_test.h"

namespace portico::net {
namespace {

class ConnectedPromise final : public ClientSocketEvents {
 public:
  void OnConnected() override { connected_.set_value(); }
  void OnBytes(std::string_view) override {}
  void OnWritable() override {}
  void OnLost(const Status&) override {}
  void Wait() { connected_.get_future().wait(); }

 private:
  std::promise<void> connected_;
};

// A listener of this machine; its port.
int Listen(int* fd) {
  *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(*fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(*fd, 1), 0);
  EXPECT_EQ(getsockname(*fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

// The descriptor of this process that is connected to the port; -1: none.
int FindConnectedTo(int port) {
  for (int fd = 0; fd < 4096; ++fd) {
    sockaddr_in peer = {};
    socklen_t size = sizeof peer;
    const bool is = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    if (is && peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) return fd;
  }
  return -1;
}

int OptionOf(int fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(fd, level, name, &value, &size), 0);
  return value;
}

// A worker whose host has vanished sends no reset: what was sent to it was waited for until the kernel had
// given up resending, after a quarter of an hour. What the kernel makes of the options is not tested here: it
// needs a host that can vanish.
TEST(ClientSocketTest, AConnectionHasTheOptionsByWhichAVanishedHostIsNoticedWithinHalfAMinute) {
  int listener = -1;
  const int port = Listen(&listener);
  Shard shard(0);
  shard.Start();
  ConnectedPromise events;
  std::unique_ptr<ClientSocket> made;
  ClientTarget target;
  target.host = "127.0.0.1";
  target.port = port;
  RunOnShard(shard, [&] { made = std::make_unique<ClientSocket>(shard, target, events); });
  events.Wait();
  const int fd = FindConnectedTo(port);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(OptionOf(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30'000);
  EXPECT_NE(OptionOf(fd, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(OptionOf(fd, IPPROTO_TCP, TCP_KEEPIDLE), 15);
  EXPECT_EQ(OptionOf(fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
  EXPECT_NE(OptionOf(fd, IPPROTO_TCP, TCP_NODELAY), 0);
  RunOnShard(shard, [&] { made.reset(); });
  shard.Stop();
  close(listener);
}

}  // namespace
}  // namespace portico::net
