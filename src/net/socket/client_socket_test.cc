#include "net/socket/client_socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>

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

// A client that is connected to a listener of this machine.
struct Connected {
  Connected() {
    const int port = Listen(&listener);
    shard.Start();
    ClientTarget target;
    target.host = "127.0.0.1";
    target.port = port;
    RunOnShard(shard, [&] { made = std::make_unique<ClientSocket>(shard, target, events); });
    events.Wait();
    fd = FindConnectedTo(port);
  }
  ~Connected() {
    RunOnShard(shard, [&] { made = nullptr; });
    close(listener);
  }

  int listener = -1;
  int fd = -1;  // the client's
  Shard shard{0};
  ConnectedPromise events;
  std::unique_ptr<ClientSocket> made;
};

// What the loops of this process wait for at the descriptor (EPOLLIN, …), of all together.
uint32_t WatchedAt(int fd) {
  uint32_t watched = 0;
  for (const auto& info : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream file(info.path());
    for (std::string line; std::getline(file, line);) {
      int target = -1;
      uint32_t events = 0;
      const int read = std::sscanf(line.c_str(), "tfd: %d events: %x", &target, &events);
      if (read == 2 && target == fd) watched |= events;
    }
  }
  return watched;
}

// A worker whose host has vanished sends no reset: what was sent to it was waited for until the kernel had
// given up resending, after a quarter of an hour. What the kernel makes of the options is not tested here: it
// needs a host that can vanish.
TEST(ClientSocketTest, AConnectionHasTheOptionsByWhichAVanishedHostIsNoticedWithinHalfAMinute) {
  const Connected client;
  ASSERT_GE(client.fd, 0);
  EXPECT_EQ(OptionOf(client.fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30'000);
  EXPECT_NE(OptionOf(client.fd, SOL_SOCKET, SO_KEEPALIVE), 0);
  EXPECT_EQ(OptionOf(client.fd, IPPROTO_TCP, TCP_KEEPIDLE), 15);
  EXPECT_EQ(OptionOf(client.fd, IPPROTO_TCP, TCP_KEEPINTVL), 5);
  EXPECT_NE(OptionOf(client.fd, IPPROTO_TCP, TCP_NODELAY), 0);
}

// One that is connected by Asio is watched for both for ever: each wait for bytes woke the loop twice.
TEST(ClientSocketTest, AConnectionThatWaitsForBytesIsNotWatchedForBeingWritable) {
  const Connected client;
  ASSERT_GE(client.fd, 0);
  const uint32_t watched = WatchedAt(client.fd);
  EXPECT_NE(watched & EPOLLIN, 0u);
  EXPECT_EQ(watched & EPOLLOUT, 0u);
}

}  // namespace
}  // namespace portico::net
