#include "net/zmq/zmtp_pull.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/zmq/zmq_library.h"
#include "net/zmq/zmq_socket.h"

namespace portico::net {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr std::chrono::seconds kPullTestTime{120};
constexpr size_t kPullTestLimit = 8 << 20;

class SocketPath {
 public:
  SocketPath() {
    char name[] = "/tmp/portico-pull-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~SocketPath() { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/socket"; }
  std::string address() const { return "ipc://" + path(); }

 private:
  std::string folder_;
};

// A PUSH socket of libzmq that connects, as SGLang's schedulers have them; it sends heartbeats.
class Pusher {
 public:
  explicit Pusher(const std::string& address)
      : socket_(LoadZmq()->socket(context_.get(), ZMQ_PUSH)) {
    const int unlimited = 0;
    LoadZmq()->setsockopt(socket_, ZMQ_SNDHWM, &unlimited, sizeof(unlimited));
    LoadZmq()->setsockopt(socket_, ZMQ_LINGER, &unlimited, sizeof(unlimited));
    const int often_ms = 5;
    const int patience_ms = 120'000;
    LoadZmq()->setsockopt(socket_, ZMQ_HEARTBEAT_IVL, &often_ms, sizeof(often_ms));
    LoadZmq()->setsockopt(socket_, ZMQ_HEARTBEAT_TIMEOUT, &patience_ms, sizeof(patience_ms));
    EXPECT_EQ(LoadZmq()->connect(socket_, address.c_str()), 0);
  }
  ~Pusher() { LoadZmq()->close(socket_); }
  void Send(std::string_view bytes, int flags = 0) {
    EXPECT_EQ(LoadZmq()->send(socket_, bytes.data(), bytes.size(), flags),
              static_cast<int>(bytes.size()));
  }

 private:
  ZmqContext context_;
  void* socket_;
};

// Greeting and handshake.
std::string PushOpening() {
  std::string opening("\xFF\0\0\0\0\0\0\0\1\x7F\3\1NULL", 16);
  opening.resize(64);
  return opening.append("\4\x1A\5READY\x0BSocket-Type\0\0\0\4PUSH", 28);
}

// A peer of no library.
class RawPeer {
 public:
  explicit RawPeer(const std::string& path) : descriptor_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), path.size());
    EXPECT_EQ(connect(descriptor_, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  }
  ~RawPeer() { close(descriptor_); }
  void Send(std::string_view bytes) {
    EXPECT_EQ(send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void StopReading() { EXPECT_EQ(shutdown(descriptor_, SHUT_RD), 0); }
  std::string Receive(size_t size) {
    std::string got(size, '\0');
    EXPECT_EQ(recv(descriptor_, got.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
    return got;
  }

 private:
  int descriptor_;
};

// One turn of its owner.
testing::AssertionResult Turn(ZmtpPull* pull) {
  std::vector<pollfd> waits;
  pull->AddWaits(&waits);
  const auto patience_ms = std::chrono::milliseconds(kPullTestTime).count();
  if (poll(waits.data(), waits.size(), static_cast<int>(patience_ms)) <= 0) {
    return testing::AssertionFailure() << "nothing comes";
  }
  pull->SetReady(waits);
  return testing::AssertionSuccess();
}

// Polls, as the owner of a socket does, until `done`.
testing::AssertionResult PollUntil(ZmtpPull* pull, const std::function<bool()>& done,
                                   const std::function<void(std::string_view)>& take) {
  const TimePoint end = Clock::now() + kPullTestTime;
  while (!done()) {
    if (Clock::now() > end) return testing::AssertionFailure() << "it does not come";
    std::vector<pollfd> waits;
    pull->AddWaits(&waits);
    EXPECT_EQ(waits.size(), 1 + pull->peers());
    poll(waits.data(), waits.size(), pull->IsReady() ? 0 : 10);
    pull->SetReady(waits);
    std::string_view part;
    for (int i = 0; i < 3 && pull->Receive(&part); ++i) take(part);  // a turn takes few
  }
  return testing::AssertionSuccess();
}

std::vector<std::string> ReceiveCount(ZmtpPull* pull, size_t count) {
  std::vector<std::string> got;
  EXPECT_TRUE(PollUntil(
      pull, [&] { return got.size() >= count; },
      [&](std::string_view part) {
        got.push_back(std::string(part) + (pull->HasMore() ? "+" : ""));
      }));
  return got;
}

TEST(ZmtpPull, MessagesOfLibzmqComeInOrderWhateverTheirSize) {
  const SocketPath at;
  Pusher early(at.address());  // it is there before the socket
  std::vector<std::string> sent;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{255}, size_t{256}, size_t{70'000}, size_t{5} << 20}) {
    for (const char byte : {'a', 'b', 'c'}) sent.emplace_back(size, byte);
  }
  for (const std::string& message : sent) early.Send(message);
  auto pull = ZmtpPull::Bind(at.path(), kPullTestLimit);
  ASSERT_TRUE(pull.ok()) << pull.status();
  EXPECT_EQ(ReceiveCount(pull->get(), sent.size()), sent);
  early.Send("one", ZMQ_SNDMORE);
  early.Send("", ZMQ_SNDMORE);
  early.Send("three");
  early.Send("whole");
  EXPECT_THAT(ReceiveCount(pull->get(), 4), ElementsAre("one+", "+", "three", "whole"));
}

TEST(ZmtpPull, SeveralPeersAreReadAndOneThatEndsIsForgotten) {
  const SocketPath at;
  auto pull = ZmtpPull::Bind(at.path(), kPullTestLimit);
  ASSERT_TRUE(pull.ok()) << pull.status();
  Pusher first(at.address());
  {
    Pusher second(at.address());
    first.Send("of the first");
    second.Send("of the second");
    EXPECT_THAT(ReceiveCount(pull->get(), 2),
                UnorderedElementsAre("of the first", "of the second"));
    EXPECT_EQ((*pull)->peers(), 2U);
  }
  EXPECT_TRUE(PollUntil(pull->get(), [&] { return (*pull)->peers() == 1; }, [](auto) {}));
  first.Send("still");
  EXPECT_THAT(ReceiveCount(pull->get(), 1), ElementsAre("still"));
}

TEST(ZmtpPull, APeerFindsTheSocketAgainThatTakesThePlaceOfAnother) {
  const SocketPath at;
  Pusher peer(at.address());
  for (int life = 0; life < 3; ++life) {
    auto pull = ZmtpPull::Bind(at.path(), kPullTestLimit);
    ASSERT_TRUE(pull.ok()) << pull.status();
    EXPECT_TRUE(PollUntil(pull->get(), [&] { return (*pull)->peers() == 1; }, [](auto) {}));
    // What it sends before it has heard of the end of the one before is lost, as with libzmq's own.
    bool came = false;
    EXPECT_TRUE(PollUntil(
        pull->get(),
        [&] {
          peer.Send("life " + std::to_string(life));
          return came;
        },
        [&](std::string_view part) { came |= part == "life " + std::to_string(life); }));
  }
  EXPECT_FALSE(std::filesystem::exists(at.path()));
}

TEST(ZmtpPull, TheFileOfAnotherSocketIsLeft) {
  const SocketPath at;
  auto first = ZmtpPull::Bind(at.path(), kPullTestLimit);
  auto second = ZmtpPull::Bind(at.path(), kPullTestLimit);
  ASSERT_TRUE(first.ok() && second.ok());
  first->reset();
  Pusher peer(at.address());
  peer.Send("to the second");
  EXPECT_THAT(ReceiveCount(second->get(), 1), ElementsAre("to the second"));
}

TEST(ZmtpPull, HeartbeatsAreAnsweredBetweenMessages) {
  const SocketPath at;
  auto pull = ZmtpPull::Bind(at.path(), kPullTestLimit);
  ASSERT_TRUE(pull.ok()) << pull.status();
  RawPeer peer(at.path());
  peer.Send(PushOpening() + std::string("\0\1a\4\x09\4PING\0\1hi\0\1b", 17));
  EXPECT_THAT(ReceiveCount(pull->get(), 2), ElementsAre("a", "b"));
  EXPECT_EQ(peer.Receive(64 + 28 + 9).substr(64 + 28), "\4\7\4PONGhi");
}

TEST(ZmtpPull, PeersThatSendGarbageOrVanishDisturbNobody) {
  const SocketPath at;
  auto pull = ZmtpPull::Bind(at.path(), kPullTestLimit);
  ASSERT_TRUE(pull.ok()) << pull.status();
  Pusher good(at.address());
  const std::string opening = PushOpening();
  RawPeer garbage(at.path());
  garbage.Send("GET / HTTP/1.1\r\n\r\n");
  RawPeer oversized(at.path());
  oversized.Send(opening + std::string("\2\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 9));
  RawPeer silent(at.path());
  {
    RawPeer vanished(at.path());
    vanished.Send(opening + std::string("\0\3all\0\x10its messa", 15));
  }
  good.Send("good");
  EXPECT_THAT(ReceiveCount(pull->get(), 2), UnorderedElementsAre("good", "all"));
  EXPECT_TRUE(PollUntil(pull->get(), [&] { return (*pull)->peers() == 2; }, [](auto) {}));
  EXPECT_EQ((*pull)->refused(), 2U);
  good.Send("still good");
  EXPECT_THAT(ReceiveCount(pull->get(), 1), ElementsAre("still good"));
}

// It kept the thread for as long as it sent: what others sent, and the end of the owner, waited for it.
TEST(ZmtpPull, APeerThatSendsNoMessagesGetsAShareOfEachTurn) {
  const SocketPath at;
  auto pull = ZmtpPull::Bind(at.path(), kPullTestLimit);
  ASSERT_TRUE(pull.ok()) << pull.status();
  RawPeer peer(at.path());
  std::string bytes = PushOpening();
  for (int i = 0; i < 12'500; ++i) bytes.append("\4\x06\5OTHER", 8);
  peer.Send(bytes.append("\0\3end", 5));
  int turns = 0;
  std::string_view part;
  for (; !(*pull)->Receive(&part); ++turns) ASSERT_TRUE(Turn(pull->get()));
  EXPECT_EQ(part, "end");
  EXPECT_GE(turns, 3) << "one accepts it";
}

// poll() found such a socket ready to be written to, always.
TEST(ZmtpPull, APeerThatDoesNotListenIsReadAndNothingWaitsToWrite) {
  const SocketPath at;
  auto pull = ZmtpPull::Bind(at.path(), kPullTestLimit);
  ASSERT_TRUE(pull.ok()) << pull.status();
  RawPeer peer(at.path());
  peer.StopReading();
  peer.Send(PushOpening() + std::string("\4\x09\4PING\0\1hi\0\1a", 14));
  EXPECT_THAT(ReceiveCount(pull->get(), 1), ElementsAre("a"));
  std::vector<pollfd> waits;
  (*pull)->AddWaits(&waits);
  ASSERT_EQ(waits.size(), 2U);
  EXPECT_EQ(waits[1].events, POLLIN);
  EXPECT_EQ((*pull)->refused(), 0U);
}

TEST(ZmtpPull, APathThatCannotBeBoundIsNamed) {
  for (const std::string& path :
       {std::string("/no/such/folder/socket"), std::string(200, 'x'), std::string()}) {
    const auto pull = ZmtpPull::Bind(path, kPullTestLimit);
    EXPECT_EQ(pull.status().code(), StatusCode::kUnavailable);
    EXPECT_THAT(std::string(MessageOf(pull.status())), testing::HasSubstr("ipc://" + path));
  }
}

}  // namespace
}  // namespace portico::net
