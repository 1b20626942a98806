// The gRPC client against our own gRPC server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitized_for_test.h"
#include "net/grpc/grpc_channel.h"
#include "net/grpc/grpc_test_client.h"
#include "net/grpc/grpc_test_server.h"
#include "net/grpc/grpc_unary_call.h"

namespace portico::net {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;

const GrpcCallOptions kUnary = {.path = "/test.Echo/Unary"};
const GrpcCallOptions kStream = {.path = "/test.Echo/Stream"};

TEST(GrpcChannelAndServer, UnderstandEachOther) {
  GrpcTestServer server;
  ClientLoop client(ToPort(server.port()));
  RecordedCall& unary = client.Start(kUnary, {"a"});
  RecordedCall& stream = client.Start(kStream, {"b", "c"});
  RecordedCall& unknown = client.Start({.path = "/test.Echo/None"});
  EXPECT_TRUE(client.WaitForEnd(unary).ok());
  EXPECT_THAT(unary.messages, ElementsAre("[a]"));
  EXPECT_TRUE(client.WaitForEnd(stream).ok());
  EXPECT_THAT(stream.messages, ElementsAre("[b]", "[c]"));
  EXPECT_EQ(client.WaitForEnd(unknown).code(), StatusCode::kUnimplemented);
}

TEST(GrpcChannelAndServer, CarryLargeAndCompressedMessages) {
  GrpcTestServer server;
  ClientLoop client(ToPort(server.port()));
  const std::string large(10 << 20, 'x');
  for (GrpcEncoding encoding : {GrpcEncoding::kIdentity, GrpcEncoding::kGzip}) {
    RecordedCall& call = client.Start({.path = "/test.Echo/Unary", .encoding = encoding}, {large});
    EXPECT_TRUE(client.WaitForEnd(call).ok()) << call.status;
    ASSERT_EQ(call.messages.size(), 1u);
    EXPECT_EQ(call.messages[0].size(), large.size() + 2);
  }
}

TEST(GrpcChannelAndServer, CarryManyCallsOverAFewConnections) {
  ServerOptions options;
  options.http2.max_concurrent_streams = 10;
  GrpcTestServer server(options);
  GrpcChannelOptions to = ToPort(server.port());
  to.max_connections = 3;
  ClientLoop client(to);
  int ended = 0;
  std::vector<std::unique_ptr<GrpcUnaryCall>> calls;
  client.On([&] {
    for (int i = 0; i < 1000; ++i) {
      const std::string text = std::to_string(i);
      calls.push_back(std::make_unique<GrpcUnaryCall>(client.channel(), kUnary, text,
                                                      [&ended, text](StatusOr<std::string> reply) {
                                                        EXPECT_TRUE(reply.ok()) << reply.status();
                                                        if (reply.ok()) {
                                                          EXPECT_EQ(*reply, "[" + text + "]");
                                                        }
                                                        ++ended;
                                                      }));
    }
  });
  client.WaitFor([&] { return ended == 1000; });
  client.On([&] {
    EXPECT_EQ(client.channel().connections(), 3u);
    EXPECT_EQ(client.channel().calls(), 0u);
    calls.clear();
  });
}

TEST(GrpcChannelAndServer, LoseNoCallWhenTheServerDrains) {
  GrpcTestServer server;
  ClientLoop client(ToPort(server.port()));
  RecordedCall& running = client.Start(kStream, {"first"}, false);
  client.WaitFor([&] { return running.messages.size() == 1; });
  std::thread drains([&] {
    EXPECT_TRUE(server->server().Drain(Clock::now() + std::chrono::seconds(kTestPatience)));
  });
  client.WaitFor([&] { return client.channel().connections() == 0; });
  client.On([&] {
    running.call->Write("second");
    running.call->End();
  });
  EXPECT_TRUE(client.WaitForEnd(running).ok()) << running.status;
  EXPECT_THAT(running.messages, ElementsAre("[first]", "[second]"));
  drains.join();
}

// Calls that write, pause, resume, cancel, end or are dropped at random; each that is not dropped
// ends once, and nothing is left over.
TEST(GrpcChannelAndServer, StandRandomUse) {
  ServerOptions options;
  options.http2.max_concurrent_streams = 20;
  GrpcTestServer server(options);
  for (unsigned seed = 0; seed < (kSanitized ? 2u : 5u); ++seed) {
    std::mt19937 random(seed);
    ClientLoop client(ToPort(server.port()));
    std::vector<RecordedCall*> calls;
    for (int i = 0; i < 600; ++i) {
      const unsigned choice = random() % 8;
      const size_t size = random() % 4 == 0 ? random() % 200000 : random() % 100;
      if (calls.size() < 100 && (choice < 2 || calls.empty())) {
        GrpcCallOptions call = kStream;
        if (random() % 4 == 0) call.timeout = milliseconds(random() % 20 + 1);
        calls.push_back(&client.Start(call, {std::string(size, 'x')}, false));
        continue;
      }
      RecordedCall& call = *calls[random() % calls.size()];
      client.On([&] {
        if (call.call == nullptr) return;
        if (choice == 2 && random() % 4 == 0) return call.call.reset();
        if (choice == 3) return call.call->PauseReading();
        if (choice == 4) return call.call->ResumeReading();
        if (choice == 5) return call.call->End();
        if (choice == 6 && random() % 4 == 0) return call.call->Cancel();
        call.call->Write(std::string(size, 'y'));
      });
    }
    client.On([&] {
      for (RecordedCall* call : calls) {
        if (call->call == nullptr) continue;
        call->call->ResumeReading();
        call->call->End();
      }
    });
    client.WaitFor([&] { return client.channel().calls() == 0; });
    client.On([&] {
      for (RecordedCall* call : calls) {
        if (call->call != nullptr) {
          EXPECT_EQ(call->ends, 1);
        }
      }
    });
  }
}

// A server that dies again and again under calls that are retried by their user.
TEST(GrpcChannelAndServer, OutliveServersThatDie) {
  std::optional<GrpcTestServer> server(std::in_place);
  const int port = server->port();
  GrpcChannelOptions to = ToPort(port);
  to.backoff = ShortBackoff();
  ClientLoop client(to);
  for (int round = 0; round < 5; ++round) {
    std::vector<RecordedCall*> calls;
    for (int i = 0; i < 20; ++i) {
      calls.push_back(&client.Start({.path = "/test.Echo/Stream", .wait_for_ready = true},
                                    {std::string(1000, 'x')}, false));
    }
    client.WaitFor([&] { return !calls.back()->messages.empty(); });
    ServerOptions options;
    options.port = port;
    server.emplace(options);
    client.On([&] {
      for (RecordedCall* call : calls) call->call->End();
    });
    client.WaitFor([&] { return client.channel().calls() == 0; });
    for (RecordedCall* call : calls) {
      EXPECT_TRUE(call->status.ok() || call->status.code() == StatusCode::kUnavailable)
          << call->status;
    }
  }
}

}  // namespace
}  // namespace portico::net
