#include "engine/sglang/launch/listeners.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace portico::sglang {
namespace {

using ::testing::HasSubstr;

// A folder as the launcher's, and what the launcher does with the next connection: it sends a line, with descriptors.
class ListenersTest : public testing::Test {
 protected:
  ListenersTest() {
    std::string folder = testing::TempDir() + "listeners-XXXXXX";
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    facts_.listeners = folder_ + "/s";
    SetAddresses("tcp://127.0.0.1:1");
    door_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, facts_.listeners.data(), facts_.listeners.size());
    EXPECT_EQ(bind(door_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0);
    EXPECT_EQ(listen(door_, 1), 0);
  }
  ~ListenersTest() override {
    shutdown(door_, SHUT_RDWR);  // answers that nobody has asked for
    if (launcher_.joinable()) launcher_.join();
    close(door_);
    std::filesystem::remove_all(folder_);
  }

  void SetAddresses(const std::string& address) {
    facts_.scheduler_input = facts_.tokenizer = facts_.detokenizer = address;
  }

  // A line, and how many descriptors come with it.
  struct Answer {
    std::string line;
    size_t descriptors = 0;
  };

  // To the next connections, one after the other.
  void Hand(std::vector<Answer> answers) {
    launcher_ = std::thread([this, answers = std::move(answers)] {
      for (const Answer& answer : answers) Serve(answer);
    });
  }
  void Hand(std::string line, size_t descriptors) { Hand({Answer{std::move(line), descriptors}}); }

  void Serve(const Answer& answer) const {
    const int connection = accept(door_, nullptr, nullptr);
    if (connection < 0) return;
    const int shown = open("/dev/null", O_RDONLY | O_CLOEXEC);
    std::string bytes = answer.line;
    iovec place{bytes.data(), bytes.size()};
    alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &place;
    message.msg_iovlen = 1;
    if (answer.descriptors > 0) {
      message.msg_control = control;
      message.msg_controllen = CMSG_SPACE(answer.descriptors * sizeof(int));
      cmsghdr* head = CMSG_FIRSTHDR(&message);
      head->cmsg_level = SOL_SOCKET;
      head->cmsg_type = SCM_RIGHTS;
      head->cmsg_len = CMSG_LEN(answer.descriptors * sizeof(int));
      for (size_t i = 0; i < answer.descriptors; ++i) {
        std::memcpy(CMSG_DATA(head) + i * sizeof(int), &shown, sizeof(int));
      }
    }
    EXPECT_EQ(sendmsg(connection, &message, 0), static_cast<ssize_t>(bytes.size()));
    close(shown);
    char byte = 0;
    EXPECT_LE(read(connection, &byte, 1), 0);  // until the front end is gone
    close(connection);
  }

  Facts facts_;
  std::string folder_;
  int door_ = -1;
  std::thread launcher_;
};

TEST_F(ListenersTest, AreEachTakenOnceAndHeldUntilTheObjectEnds) {
  Hand("{\"event\": \"sockets\"}\n", 3);
  auto taken = Listeners::TakeOver(facts_, {});
  ASSERT_TRUE(taken.ok()) << taken.status();
  for (size_t i = 0; i < 3; ++i) {
    const int descriptor = taken->Take(i);
    EXPECT_GE(descriptor, 0);
    EXPECT_EQ(taken->Take(i), -1);
    close(descriptor);
  }
  EXPECT_EQ(taken->Take(3), -1);
}

TEST_F(ListenersTest, UnixSocketsAreHandedOverWithoutDescriptors) {
  SetAddresses("ipc://" + folder_ + "/x");
  Hand("{\"event\": \"sockets\"}\n", 0);
  auto taken = Listeners::TakeOver(facts_, {});
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(taken->Take(0), -1);
}

TEST_F(ListenersTest, ALauncherThatRefusesSaysWhy) {
  Hand("{\"event\": \"failed\", \"message\": \"another front end serves its sockets\"}\n", 0);
  const Status refused = Listeners::TakeOver(facts_, {}).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(refused), HasSubstr("another front end serves its sockets"));
}

constexpr char kHeldByAnother[] =
    "{\"event\": \"failed\", \"message\": \"another front end serves its sockets\", \"busy\": "
    "true}\n";

// A front end that was replaced drains for a while, and the one that came after it did not start.
TEST_F(ListenersTest, AreWaitedForWhileAnotherFrontEndHasThem) {
  Hand({{kHeldByAnother}, {kHeldByAnother}, {"{\"event\": \"sockets\"}\n", 3}});
  const auto taken = Listeners::TakeOver(facts_, std::chrono::hours(1));
  EXPECT_TRUE(taken.ok()) << taken.status();
}

TEST_F(ListenersTest, AreNotWaitedForWithoutEnd) {
  Hand(std::vector<Answer>(100, Answer{kHeldByAnother}));
  const Status refused = Listeners::TakeOver(facts_, std::chrono::milliseconds(300)).status();
  EXPECT_THAT(MessageOf(refused), HasSubstr("another front end serves its sockets"));
}

TEST_F(ListenersTest, WhatFailsForAnotherReasonIsNotWaitedFor) {
  Hand("{\"event\": \"failed\", \"message\": \"no descriptors\"}\n", 0);
  const Status refused = Listeners::TakeOver(facts_, std::chrono::hours(1)).status();
  EXPECT_THAT(MessageOf(refused), HasSubstr("no descriptors"));
}

TEST_F(ListenersTest, WhatIsNotThatIsRefused) {
  for (const auto& [line, descriptors] :
       std::initializer_list<std::pair<const char*, size_t>>{{"{\"event\": \"sockets\"}\n", 2},
                                                             {"{\"event\": \"sockets\"}\n", 0},
                                                             {"{\"event\": \"sockets\"}\n", 8},
                                                             {"no JSON\n", 3}}) {
    Hand(line, descriptors);
    EXPECT_EQ(Listeners::TakeOver(facts_, {}).status().code(), StatusCode::kUnavailable) << line;
    launcher_.join();
  }
  facts_.listeners = "/nowhere/at/all";
  EXPECT_EQ(Listeners::TakeOver(facts_, {}).status().code(), StatusCode::kUnavailable);
}

TEST_F(ListenersTest, SocketsThatOthersCouldReachAreRefused) {
  unsetenv("SGLANG_ZMQ_ALLOWED_PEERS");
  EXPECT_TRUE(CheckSocketAddresses(facts_).ok());
  SetAddresses("ipc://" + folder_ + "/x");
  EXPECT_TRUE(CheckSocketAddresses(facts_).ok());
  SetAddresses("tcp://localhost:7000");
  EXPECT_TRUE(CheckSocketAddresses(facts_).ok());
  SetAddresses("tcp://localhost.example:7000");
  EXPECT_THAT(MessageOf(CheckSocketAddresses(facts_)), HasSubstr("SGLANG_ZMQ_ALLOWED_PEERS"));
  SetAddresses("tcp://[fd00::1]:7000");
  EXPECT_THAT(MessageOf(CheckSocketAddresses(facts_)), HasSubstr("own schedulers too (fd00::1)"));
  SetAddresses("tcp://10.0.0.1:7000");
  EXPECT_THAT(MessageOf(CheckSocketAddresses(facts_)), HasSubstr("own schedulers too (10.0.0.1)"));
  setenv("SGLANG_ZMQ_ALLOWED_PEERS", "10.0.0.2", 1);
  EXPECT_TRUE(CheckSocketAddresses(facts_).ok());
  unsetenv("SGLANG_ZMQ_ALLOWED_PEERS");
  SetAddresses("tcp://127.0.0.1:7000");
  facts_.detokenizer = "ipc://" + folder_ + "/x";
  EXPECT_THAT(MessageOf(CheckSocketAddresses(facts_)), HasSubstr("are not of one transport"));
  SetAddresses("inproc://x");
  EXPECT_EQ(CheckSocketAddresses(facts_).code(), StatusCode::kInvalidArgument);
  SetAddresses("tcp://127.0.0.1:7000");
  chmod(folder_.c_str(), 0755);
  EXPECT_THAT(MessageOf(CheckSocketAddresses(facts_)), HasSubstr("is open to others"));
  facts_.listeners.clear();
  EXPECT_THAT(MessageOf(CheckSocketAddresses(facts_)), HasSubstr("nobody holds"));
}

}  // namespace
}  // namespace portico::sglang
