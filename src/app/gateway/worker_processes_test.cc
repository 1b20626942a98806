#include "app/gateway/worker_processes.h"

#include <gtest/gtest.h>
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
    const int fd = TakeLoopbackPort(port);
    if (fd >= 0) sockets_.push_back(fd);
    return fd >= 0;
  }

 private:
  std::vector<int> sockets_;
};

TEST(FreePortsTest, PortsInARowHaveNoTakenOneAmongThem) {
  // The port behind a gRPC worker's is that of its server of metrics: if another program had it, the worker ended.
  int row = 0;
  TakenPorts taken;
  for (int from = 13000; row == 0 && from < 30000; from += 1000) {
    const auto free = FreePorts(from, 6);
    ASSERT_TRUE(free.ok()) << free.status();
    // Another program may be faster.
    if (taken.Take(*free + 1) && taken.Take(*free + 3)) row = *free;
  }
  ASSERT_GT(row, 0);
  const auto pair = FreePorts(row, 2);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_GE(*pair, row + 4);
  const auto one = FreePorts(row + 1, 1);
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_GE(*one, row + 2);
  EXPECT_NE(*one, row + 3);
  EXPECT_FALSE(FreePorts(65535, 2).ok());
}

}  // namespace
}  // namespace portico
