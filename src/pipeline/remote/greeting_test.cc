#include "pipeline/remote/greeting.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "pipeline/remote/tcp_channel.h"

namespace portico::pipeline {
namespace {

using ::testing::HasSubstr;

constexpr char kToken[] = "a token of some length";
const std::function<bool()> kNever = [] { return false; };

// Two ends of a stream that do not block.
struct Ends {
  Ends() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    server = Fd(ends[0]);
    stage = Fd(ends[1]);
  }
  Fd server;
  Fd stage;
};

struct Greeted {
  Status server;
  Status stage;
};
Greeted Greet(std::string_view server_token, std::string_view stage_token) {
  const Ends ends;
  const auto server = net::MakePlainTransport(ends.server.get());
  const auto stage = net::MakePlainTransport(ends.stage.get());
  Greeted greeted;
  std::thread other(
      [&] { greeted.stage = GreetServer({ends.stage.get(), *stage, stage_token, kNever}); });
  greeted.server = GreetStageHost({ends.server.get(), *server, server_token, kNever});
  other.join();
  return greeted;
}

// What the stage's host says to somebody who says this.
Status GreetStranger(std::string_view says) {
  Ends ends;
  const auto stage = net::MakePlainTransport(ends.stage.get());
  EXPECT_EQ(write(ends.server.get(), says.data(), says.size()), static_cast<ssize_t>(says.size()));
  shutdown(ends.server.get(), SHUT_WR);
  return GreetServer({ends.stage.get(), *stage, kToken, kNever});
}

TEST(StageGreeting, BothEndsProveTheToken) {
  const Greeted greeted = Greet(kToken, kToken);
  EXPECT_TRUE(greeted.server.ok()) << greeted.server;
  EXPECT_TRUE(greeted.stage.ok()) << greeted.stage;
  EXPECT_TRUE(Greet("", "").server.ok());
}

TEST(StageGreeting, AnotherTokenOrNoneIsRefusedByBoth) {
  for (const std::string_view other : {"another token of a length", ""}) {
    const Greeted greeted = Greet(other, kToken);
    EXPECT_EQ(greeted.server.code(), StatusCode::kUnauthenticated) << greeted.server;
    EXPECT_EQ(greeted.stage.code(), StatusCode::kUnauthenticated) << greeted.stage;
    EXPECT_EQ(Greet(kToken, other).stage.code(), StatusCode::kUnauthenticated);
  }
}

TEST(StageGreeting, ShortTokensAreRefused) {
  EXPECT_FALSE(CheckToken("123456789012345").ok());
  EXPECT_TRUE(CheckToken("1234567890123456").ok());
  EXPECT_TRUE(CheckToken("").ok());
}

TEST(StageGreeting, StrangersAreRefused) {
  EXPECT_THAT(GreetStranger("portico stage 1\n" + std::string(64, 'x')).message(),
              HasSubstr("another version"));
  EXPECT_THAT(GreetStranger("GET / HTTP/1.1\r\nhost: x\r\n\r\n").message(),
              HasSubstr("not a server with stages"));
  EXPECT_EQ(GreetStranger(std::string(kGreeting) + std::string(64, 'x')).code(),
            StatusCode::kUnauthenticated);
  EXPECT_EQ(GreetStranger("portico").code(), StatusCode::kUnavailable);
  EXPECT_EQ(GreetStranger(std::string(kGreeting) + "torn").code(), StatusCode::kUnavailable);
}

// Who listens cannot pass for a host that knows the token by answering with what it was sent.
TEST(StageGreeting, AHostThatOnlySaysYesIsRefused) {
  const Ends ends;
  const std::string says =
      std::string(kGreeting) + std::string(32, 'r') + "+" + std::string(32, 'p');
  ASSERT_EQ(write(ends.stage.get(), says.data(), says.size()), static_cast<ssize_t>(says.size()));
  const auto server = net::MakePlainTransport(ends.server.get());
  const Status greeted = GreetStageHost({ends.server.get(), *server, kToken, kNever});
  EXPECT_EQ(greeted.code(), StatusCode::kUnauthenticated) << greeted;
}

TEST(StageGreeting, SilenceEndsWithTheProgram) {
  const Ends ends;
  const auto stage = net::MakePlainTransport(ends.stage.get());
  EXPECT_EQ(GreetServer({ends.stage.get(), *stage, kToken, [] { return true; }}).code(),
            StatusCode::kUnavailable);
}

TEST(TcpChannel, CarriesWhatIsLongerThanTheSocketTakes) {
  Ends ends;
  auto server_transport = net::MakePlainTransport(ends.server.get());
  auto stage_transport = net::MakePlainTransport(ends.stage.get());
  auto server = MakeTcpChannel(std::move(ends.server), std::move(server_transport));
  const auto stage = MakeTcpChannel(std::move(ends.stage), std::move(stage_transport));
  const std::string tensor(16 << 20, 't');
  server->Send({"tensor", Blob::Own(tensor)});
  server->Send({"after", nullptr});
  ASSERT_TRUE(server->keeps());
  std::vector<Datagram> got;
  while (got.size() < 2) {
    server->Flush();
    auto received = stage->Receive();
    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_FALSE(received->ended);
    if (!received->empty) got.push_back(std::move(received->message));
  }
  EXPECT_FALSE(server->keeps());
  EXPECT_EQ(got[0].blob->bytes(), tensor);
  EXPECT_EQ(got[1].bytes, "after");
  EXPECT_GE(stage->progress(), tensor.size());
  // A lost connection is seen by reading, at both ends.
  server.reset();
  EXPECT_TRUE(stage->Receive()->ended);
  stage->Send({"to nobody", nullptr});
  stage->Flush();
  EXPECT_FALSE(stage->keeps());
}

}  // namespace
}  // namespace portico::pipeline
