#include "net/zmq/zmq_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "base/clock.h"
#include "net/zmq/zmq_library.h"

namespace portico::net {
namespace {

TEST(ZmqSocketTest, AFrameThatIsOwnedIsKeptUntilItIsSentAndLetGoOfThen) {
  if (LoadZmq() == nullptr) GTEST_SKIP() << "libzmq is not installed";
  const std::string path = testing::TempDir() + "owned-" + std::to_string(getpid()) + ".sock";
  const absl::Cleanup remove = [&path] { unlink(path.c_str()); };  // libzmq leaves it
  const std::string address = "ipc://" + path;
  const std::string sent(size_t{3} << 20, 'x');
  std::weak_ptr<void> held;
  const ZmqContext context;
  auto push = ZmqSocket::BindPush(context, address, {});
  ASSERT_TRUE(push.ok()) << push.status();
  std::string frame = sent;
  std::shared_ptr<void> token = std::make_shared<int>(1);
  held = token;
  EXPECT_FALSE(push->SendOwned(&frame, &token));  // nobody is there
  EXPECT_EQ(frame, sent);
  ASSERT_NE(token, nullptr);

  void* pull = LoadZmq()->socket(context.get(), ZMQ_PULL);
  ASSERT_EQ(LoadZmq()->connect(pull, address.c_str()), 0);
  const TimePoint until = Clock::now() + std::chrono::seconds(120);
  while (!push->SendOwned(&frame, &token)) {
    ASSERT_LT(Clock::now(), until);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(token, nullptr);
  zmq_msg_t message;
  LoadZmq()->msg_init(&message);
  EXPECT_EQ(LoadZmq()->msg_recv(&message, pull, 0), static_cast<int>(sent.size()));
  EXPECT_EQ(std::string(static_cast<const char*>(LoadZmq()->msg_data(&message)), sent.size()),
            sent);
  LoadZmq()->msg_close(&message);
  while (!held.expired()) {
    ASSERT_LT(Clock::now(), until);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  LoadZmq()->close(pull);
}

}  // namespace
}  // namespace portico::net
