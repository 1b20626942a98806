#include "net/zmq/zmq_guard.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "net/zmq/zmq_library.h"

namespace portico::net {
namespace {

constexpr std::chrono::seconds kGuardTestTime{120};

// A listener of the loopback, on a port of the kernel's.
struct TestListener {
  int descriptor = -1;
  std::string address;

  TestListener() {
    descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(name);
    EXPECT_EQ(bind(descriptor, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_EQ(getsockname(descriptor, reinterpret_cast<sockaddr*>(&name), &size), 0);
    EXPECT_EQ(listen(descriptor, 16), 0);
    address = "tcp://127.0.0.1:" + std::to_string(ntohs(name.sin_port));
  }
};

// A peer as SGLang's schedulers are: it connects, and is told nothing of who is at the other end.
class Puller {
 public:
  explicit Puller(const std::string& address)
      : socket_(LoadZmq()->socket(context_.get(), ZMQ_PULL)) {
    const int none = 0;
    LoadZmq()->setsockopt(socket_, ZMQ_LINGER, &none, sizeof(none));
    EXPECT_EQ(LoadZmq()->connect(socket_, address.c_str()), 0);
  }
  ~Puller() { LoadZmq()->close(socket_); }
  std::string Receive() {
    zmq_msg_t message;
    LoadZmq()->msg_init(&message);
    const bool got = LoadZmq()->msg_recv(&message, socket_, ZMQ_DONTWAIT) >= 0;
    std::string text;
    if (got) {
      text.assign(static_cast<const char*>(LoadZmq()->msg_data(&message)),
                  LoadZmq()->msg_size(&message));
    }
    LoadZmq()->msg_close(&message);
    return text;
  }

 private:
  ZmqContext context_;
  void* socket_;
};

bool Until(const std::function<bool()>& is) {
  const TimePoint end = Clock::now() + kGuardTestTime;
  while (!is()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

TEST(ZmqGuard, APeerGetsNothingUntilItIsAdmittedAndThenTriesAgain) {
  const ZmqContext context;
  int asked = 0;
  bool open = false;
  auto guard = ZmqGuard::Bind(context, [&](std::string_view address) {
    EXPECT_EQ(address, "127.0.0.1");
    ++asked;
    return open;
  });
  ASSERT_TRUE(guard.ok());
  const TestListener listener;
  auto push = ZmqSocket::BindPush(context, listener.address,
                                  {.listener = listener.descriptor, .guarded = true});
  ASSERT_TRUE(push.ok()) << push.status();
  Puller peer(listener.address);
  EXPECT_TRUE(Until([&] {
    guard->Answer();
    EXPECT_FALSE(push->Send("secret"));
    return asked >= 2;
  }));
  open = true;
  EXPECT_TRUE(Until([&] {
    guard->Answer();
    return push->Send("for you");
  }));
  std::string got;
  EXPECT_TRUE(Until([&] { return !(got = peer.Receive()).empty(); }));
  EXPECT_EQ(got, "for you");
}

TEST(ZmqGuard, AListenerThatPeersFoundBeforeIsTakenOver) {
  const TestListener listener;
  Puller peer(listener.address);
  for (int life = 0; life < 2; ++life) {
    const ZmqContext context;
    auto push =
        ZmqSocket::BindPush(context, listener.address, {.listener = dup(listener.descriptor)});
    ASSERT_TRUE(push.ok());
    const std::string sent = "life " + std::to_string(life);
    EXPECT_TRUE(Until([&] { return push->Send(sent); }));
    std::string got;
    EXPECT_TRUE(Until([&] { return !(got = peer.Receive()).empty(); }));
    EXPECT_EQ(got, sent);
  }
  close(listener.descriptor);
}

}  // namespace
}  // namespace portico::net
