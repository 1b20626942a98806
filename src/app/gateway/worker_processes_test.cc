#include "app/gateway/worker_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"

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

// The process has no descriptor left while this lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    const int lowest = dup(STDERR_FILENO);
    close(lowest);
    few.rlim_cur = static_cast<rlim_t>(lowest);
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(WorkerProcessesTest, ARestartWithoutDescriptorsIsTriedAgainLater) {
  // The launch ended, and the workers that were well with it.
  for (const char* mark : {"", "worker 0"}) {
    WorkerCommand command;
    command.words = {"/bin/sh", "-c", "exit 0"};
    command.name = "the worker";
    command.url = "http://a:1";
    command.log_mark = mark;
    std::vector<WorkerCommand> commands;
    commands.push_back(std::move(command));
    WorkerProcesses workers(std::move(commands));
    int ends = 0;
    const auto tick = [&] {
      const Status ran = workers.Tick([&](const std::string&) { ++ends; });
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return ran;
    };
    const TimePoint deadline = Clock::now() + std::chrono::seconds(60);
    while (ends == 0 && Clock::now() < deadline) ASSERT_EQ(tick(), OkStatus());
    ASSERT_EQ(ends, 1);
    testing::internal::CaptureStderr();
    {
      const NoDescriptors none;
      const TimePoint due = Clock::now() + std::chrono::milliseconds(500);  // the first pause
      while (Clock::now() < due) EXPECT_EQ(tick(), OkStatus());
      EXPECT_EQ(tick(), OkStatus());
      EXPECT_EQ(workers.Runs("http://a:1"), false);
    }
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                testing::HasSubstr("the worker does not start: pipe: "));
    while (workers.Runs("http://a:1") == false && Clock::now() < deadline) {
      ASSERT_EQ(tick(), OkStatus());
    }
    EXPECT_EQ(workers.Runs("http://a:1"), true);
  }
}

TEST(WorkerProcessesTest, AFirstStartWithoutDescriptorsFails) {
  WorkerCommand command;
  command.words = {"/bin/true"};
  command.name = "the worker";
  std::vector<WorkerCommand> commands;
  commands.push_back(std::move(command));
  WorkerProcesses workers(std::move(commands));
  Status started;
  {
    const NoDescriptors none;
    started = workers.Tick([](const std::string&) {});
  }
  EXPECT_THAT(std::string(MessageOf(started)), testing::StartsWith("the worker: pipe: "));
}

}  // namespace
}  // namespace portico
