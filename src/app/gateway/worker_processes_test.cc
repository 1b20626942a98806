#include "app/gateway/worker_processes.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

namespace portico {
namespace {

// Ports that somebody has.
class TakenPorts {
 public:
  ~TakenPorts() {
    for (const int fd : sockets_) close(fd);
  }
  bool Take(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockets_.push_back(fd);
    return bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

 private:
  std::vector<int> sockets_;
};

TEST(FreePortsTest, PortsInARowHaveNoTakenOneAmongThem) {
  // The port behind a gRPC worker's is that of its server of metrics: if another program had it, the worker ended.
  const auto row = FreePorts(13000, 6);
  ASSERT_TRUE(row.ok()) << row.status();
  TakenPorts taken;
  if (!taken.Take(*row + 1) || !taken.Take(*row + 3)) GTEST_SKIP() << "another program was faster";
  const auto pair = FreePorts(*row, 2);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_GE(*pair, *row + 4);
  const auto one = FreePorts(*row + 1, 1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_GE(*one, *row + 2);
  EXPECT_NE(*one, *row + 3);
  EXPECT_FALSE(FreePorts(65535, 2).ok());
}

}  // namespace
}  // namespace portico
