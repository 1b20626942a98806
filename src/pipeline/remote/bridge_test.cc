#include "pipeline/remote/bridge.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "pipeline/process/unix_channel.h"

namespace portico::pipeline {
namespace {

struct SocketEnds {
  SocketEnds() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    near = MakeUnixChannel(Fd(fds[0]));
    far = Fd(fds[1]);
  }
  std::unique_ptr<Channel> near;
  Fd far;
};

// Why a bridge ends that gets `sent` from the server.
std::string EndOf(const Datagram& sent, SocketEnds* stage) {
  SocketEnds server;
  EXPECT_EQ(SendDatagram(server.far.get(), sent, /*wait=*/true), Sent::kYes);
  server.far.Close();
  return Bridge(*server.near, *stage->near, /*exit=*/-1, [] { return false; });
}

TEST(BridgeTest, PassesOnWhatIsForAStage) {
  SocketEnds stage;
  EXPECT_EQ(EndOf(NumberMessage(MessageKind::kPing, 0, 7), &stage),
            "the server has closed the connection");
  auto received = ReceiveDatagram(stage.far.get(), /*wait=*/true);
  ASSERT_TRUE(received.ok());
  auto message = ReadMessage(received->message);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->kind, MessageKind::kPing);
  EXPECT_EQ(message->number, 7);
}

// kInit names the program that runs.
TEST(BridgeTest, NothingElseComesInBehindAMessageThatIsForAStage) {
  const auto init = TextMessage(MessageKind::kInit, "{}");
  ASSERT_TRUE(init.ok());
  Datagram packed;
  ASSERT_TRUE(Pack(NumberMessage(MessageKind::kPing, 0, 1), &packed));
  ASSERT_TRUE(Pack(*init, &packed));
  for (const Datagram& sent : {*init, packed}) {
    SocketEnds stage;
    EXPECT_EQ(EndOf(sent, &stage), "the server sent what is not for a stage");
    stage.near.reset();
    auto received = ReceiveDatagram(stage.far.get(), /*wait=*/true);
    ASSERT_TRUE(received.ok());
    EXPECT_TRUE(received->ended) << "nothing reaches it";
  }
}

}  // namespace
}  // namespace portico::pipeline
