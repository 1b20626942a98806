#include "net/grpc/grpc_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/grpc/grpc_test_client.h"
#include "net/grpc/grpc_test_peer.h"

namespace portico::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const GrpcCallOptions kCall = {.path = "/a.B/C"};
const GrpcCallOptions kPatient = {.path = "/a.B/C", .wait_for_ready = true};

// A port on which nobody listens.
int ClosedPort() { return TestListener().port(); }

TEST(GrpcChannel, PutsCallsOnOneConnectionAsLongAsTheServerTakesThem) {
  TestListener listener;
  ClientLoop client(ToPort(listener.port()));
  RecordedCall& first = client.Start(kCall);
  TestPeer peer(listener.Accept(), 3);
  peer.WaitForRequest(0);
  RecordedCall& second = client.Start(kCall);
  RecordedCall& third = client.Start(kCall);
  for (size_t i = 0; i < 3; ++i) peer.Answer(peer.WaitForRequest(i), "answer");
  for (RecordedCall* call : {&first, &second, &third}) {
    EXPECT_TRUE(client.WaitForEnd(*call).ok());
  }
  client.On([&] { EXPECT_EQ(client.channel().connections(), 1u); });
}

TEST(GrpcChannel, OpensAnotherConnectionAtTheLimitOfStreamsAndNoMoreThanItMay) {
  TestListener listener;
  GrpcChannelOptions options = ToPort(listener.port());
  options.max_connections = 2;
  ClientLoop client(options);
  std::vector<RecordedCall*> calls;
  for (int i = 0; i < 5; ++i) calls.push_back(&client.Start(kCall));
  TestPeer one(listener.Accept(), 2);
  one.WaitForRequest(0);
  one.WaitForRequest(1);
  TestPeer two(listener.Accept(), 2);
  two.WaitForRequest(0);
  two.WaitForRequest(1);
  client.On([&] {
    EXPECT_EQ(client.channel().connections(), 2u);
    EXPECT_EQ(client.channel().pending_calls(), 1u);
  });
  for (TestPeer* peer : {&one, &two}) {
    for (size_t i = 0; i < 2; ++i) peer->Answer(peer->WaitForRequest(i), "answer");
  }
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(client.WaitForEnd(*calls[static_cast<size_t>(i)]).ok());
  // The one that waited has come to either.
  client.WaitFor([&] { return client.channel().pending_calls() == 0; });
}

TEST(GrpcChannel, FollowsALimitOfStreamsThatChanges) {
  TestListener listener;
  GrpcChannelOptions options = ToPort(listener.port());
  options.max_connections = 1;
  ClientLoop client(options);
  RecordedCall& first = client.Start(kCall);
  TestPeer peer(listener.Accept(), 1);
  peer.WaitForRequest(0);
  RecordedCall& second = client.Start(kCall);
  client.On([&] { EXPECT_EQ(client.channel().pending_calls(), 1u); });
  peer.SetMaxStreams(2);
  peer.Answer(peer.WaitForRequest(1), "second");
  EXPECT_TRUE(client.WaitForEnd(second).ok());
  peer.Answer(peer.WaitForRequest(0), "first");
  EXPECT_TRUE(client.WaitForEnd(first).ok());
}

TEST(GrpcChannel, BoundsTheCallsThatWait) {
  TestListener listener;
  GrpcChannelOptions options = ToPort(listener.port());
  options.max_pending_calls = 2;
  ClientLoop client(options);
  client.Start(kCall);
  client.Start(kCall);
  EXPECT_EQ(client.WaitForEnd(client.Start(kCall)).code(), StatusCode::kResourceExhausted);
}

TEST(GrpcChannel, FailsFastWhereNobodyListens) {
  ClientLoop client(ToPort(ClosedPort()));
  RecordedCall& call = client.Start(kCall);
  EXPECT_EQ(client.WaitForEnd(call).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(call.status), HasSubstr("refused"));
  // Within the backoff of a second nothing is tried.
  EXPECT_EQ(client.WaitForEnd(client.Start(kCall)).code(), StatusCode::kUnavailable);
}

TEST(GrpcChannel, NamesTheHostItDidNotFind) {
  GrpcChannelOptions options = ToPort(1);
  options.host = "no-such-host.invalid";
  ClientLoop client(options);
  RecordedCall& call = client.Start(kCall);
  EXPECT_EQ(client.WaitForEnd(call).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(call.status), HasSubstr("no-such-host.invalid:1: no address found"));
}

TEST(GrpcChannel, FindsAHostByItsName) {
  addrinfo* found = nullptr;
  if (getaddrinfo("localhost", nullptr, nullptr, &found) != 0) {
    GTEST_SKIP() << "this machine does not know localhost";  // a bare debootstrap folder
  }
  freeaddrinfo(found);
  TestListener listener;
  GrpcChannelOptions options = ToPort(listener.port());
  options.host = "localhost";
  ClientLoop client(options);
  RecordedCall& call = client.Start(kCall);
  TestPeer peer(listener.Accept());
  peer.Answer(peer.WaitForRequest(), "answer");
  EXPECT_TRUE(client.WaitForEnd(call).ok());
}

TEST(GrpcChannel, WaitsForAServerThatComesLater) {
  const int port = ClosedPort();
  GrpcChannelOptions options = ToPort(port);
  options.backoff = ShortBackoff();
  ClientLoop client(options);
  RecordedCall& hasty = client.Start(kCall);
  RecordedCall& patient = client.Start(kPatient);
  EXPECT_EQ(client.WaitForEnd(hasty).code(), StatusCode::kUnavailable);
  client.On([&] { EXPECT_EQ(patient.ends, 0); });
  TestListener listener(port);
  TestPeer peer(listener.Accept());
  peer.Answer(peer.WaitForRequest(), "answer");
  EXPECT_TRUE(client.WaitForEnd(patient).ok());
}

TEST(GrpcChannel, LetsTheDeadlineEndTheWaitForAServer) {
  ClientLoop client(ToPort(ClosedPort()));
  GrpcCallOptions options = kPatient;
  options.timeout = milliseconds(30);
  EXPECT_EQ(client.WaitForEnd(client.Start(options)).code(), StatusCode::kDeadlineExceeded);
  client.On([&] { EXPECT_EQ(client.channel().pending_calls(), 0u); });
}

TEST(GrpcChannel, GivesUpAServerThatNeverSaysAnything) {
  TestListener listener;
  GrpcChannelOptions options = ToPort(listener.port());
  options.connect_timeout = milliseconds(50);
  ClientLoop client(options);
  RecordedCall& call = client.Start(kCall);
  EXPECT_EQ(client.WaitForEnd(call).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(call.status), HasSubstr("too long"));
}

TEST(GrpcChannel, ConnectsAgainAfterALoss) {
  TestListener listener;
  ClientLoop client(ToPort(listener.port()));
  RecordedCall& first = client.Start(kCall);
  {
    TestPeer peer(listener.Accept());
    peer.Answer(peer.WaitForRequest(), "answer");
    EXPECT_TRUE(client.WaitForEnd(first).ok());
  }
  client.WaitFor([&] { return client.channel().connections() == 0; });
  // At once: a connection that has answered was no failed attempt.
  RecordedCall& second = client.Start(kCall);
  TestPeer peer(listener.Accept());
  peer.Answer(peer.WaitForRequest(), "answer");
  EXPECT_TRUE(client.WaitForEnd(second).ok());
}

TEST(GrpcChannel, SendsWhatAServerRefusedToItsNextConnection) {
  TestListener listener;
  ClientLoop client(ToPort(listener.port()));
  RecordedCall& served = client.Start(kCall);
  RecordedCall& refused = client.Start(kCall, {"one", "two"});
  TestPeer first(listener.Accept());
  const int id = first.WaitForRequest(0);
  first.WaitForRequest(1);
  first.Goaway(id);
  TestPeer second(listener.Accept());
  const int again = second.WaitForRequest();
  EXPECT_EQ(second.request(again).body, std::string("\0\0\0\0\x03one\0\0\0\0\x03two", 16));
  second.Answer(again, "answer");
  EXPECT_TRUE(client.WaitForEnd(refused).ok());
  // What the first server had taken it still answers.
  first.Answer(id, "answer");
  EXPECT_TRUE(client.WaitForEnd(served).ok());
  first.ReadUntil([] { return false; });
  EXPECT_TRUE(first.ended());
}

TEST(GrpcChannel, SendsAStreamThatWasRefusedOnceMore) {
  TestListener listener;
  ClientLoop client(ToPort(listener.port()));
  RecordedCall& call = client.Start(kCall);
  TestPeer peer(listener.Accept());
  peer.Reset(peer.WaitForRequest(0), NGHTTP2_REFUSED_STREAM);
  peer.Answer(peer.WaitForRequest(1), "answer");
  EXPECT_TRUE(client.WaitForEnd(call).ok());
}

TEST(GrpcChannel, DoesNotRepeatForEverWhatIsRefused) {
  TestListener listener;
  ClientLoop client(ToPort(listener.port()));
  RecordedCall& call = client.Start(kCall);
  TestPeer peer(listener.Accept());
  for (size_t i = 0; i < 4; ++i) peer.Reset(peer.WaitForRequest(i), NGHTTP2_REFUSED_STREAM);
  EXPECT_EQ(client.WaitForEnd(call).code(), StatusCode::kUnavailable);
}

TEST(GrpcChannel, BacksOffFromAServerThatSendsEveryConnectionAway) {
  TestListener listener;
  ClientLoop client(ToPort(listener.port()));
  RecordedCall& call = client.Start(kCall);
  for (int i = 0; i < 3; ++i) {
    TestPeer peer(listener.Accept());
    peer.WaitForRequest();
    peer.Goaway(0);
    peer.ReadUntil([] { return false; });
  }
  EXPECT_EQ(client.WaitForEnd(call).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(call.status), HasSubstr("refuses new connections"));
}

TEST(GrpcChannel, PingsASilentServerAndGivesItUp) {
  TestListener listener;
  GrpcChannelOptions options = ToPort(listener.port());
  options.keepalive_time = milliseconds(30);
  {
    // An answered ping keeps the connection.
    ClientLoop client(options);
    RecordedCall& call = client.Start(kCall);
    TestPeer peer(listener.Accept());
    EXPECT_TRUE(peer.ReadUntil([&] { return peer.pings() >= 3; }));
    client.On([&] { EXPECT_EQ(call.ends, 0); });
  }
  options.keepalive_timeout = milliseconds(30);
  ClientLoop client(options);
  RecordedCall& call = client.Start(kCall);
  TestPeer peer(listener.Accept());  // whose SETTINGS are all that it says
  EXPECT_EQ(client.WaitForEnd(call).code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(call.status), HasSubstr("pings"));
}

TEST(GrpcChannel, PingsLessOftenWhenTheServerCallsItTooOften) {
  TestListener listener;
  GrpcChannelOptions options = ToPort(listener.port());
  options.keepalive_time = milliseconds(20);
  ClientLoop client(options);
  client.Start(kCall);
  TestPeer first(listener.Accept());
  first.WaitForRequest();
  EXPECT_TRUE(first.ReadUntil([&] { return first.pings() >= 2; }));
  first.Goaway(1, NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
  client.WaitFor([&] { return client.channel().options().keepalive_time == milliseconds(40); });
}

TEST(GrpcChannel, ClosesAConnectionThatHasBeenIdle) {
  TestListener listener;
  GrpcChannelOptions options = ToPort(listener.port());
  options.idle_timeout = milliseconds(50);
  ClientLoop client(options);
  RecordedCall& call = client.Start(kCall);
  TestPeer peer(listener.Accept());
  peer.Answer(peer.WaitForRequest(), "answer");
  EXPECT_TRUE(client.WaitForEnd(call).ok());
  peer.ReadUntil([] { return false; });
  EXPECT_EQ(peer.goaways(), 1);
  client.WaitFor([&] { return client.channel().connections() == 0; });
}

TEST(GrpcChannel, ShutsDownWhenItsCallsHaveEnded) {
  TestListener listener;
  ClientLoop client(ToPort(listener.port()));
  RecordedCall& call = client.Start(kCall);
  TestPeer peer(listener.Accept());
  const int id = peer.WaitForRequest();
  bool done = false;
  client.On([&] { client.channel().Shutdown([&] { done = true; }); });
  EXPECT_EQ(client.WaitForEnd(client.Start(kCall)).code(), StatusCode::kUnavailable);
  client.On([&] { EXPECT_FALSE(done); });
  peer.Answer(id, "answer");
  EXPECT_TRUE(client.WaitForEnd(call).ok());
  client.WaitFor([&] { return done; });
  peer.ReadUntil([] { return false; });
  EXPECT_TRUE(peer.ended());
}

TEST(GrpcChannel, ThatIsDestroyedCancelsItsCalls) {
  TestListener listener;
  ClientLoop client(ToPort(listener.port()));
  RecordedCall& running = client.Start(kCall);
  TestPeer peer(listener.Accept(), 1);
  peer.WaitForRequest();
  RecordedCall& waiting = client.Start(kPatient);
  client.On([&] {
    client.DropChannel();
    EXPECT_EQ(running.status.code(), StatusCode::kCancelled);
    EXPECT_EQ(waiting.status.code(), StatusCode::kCancelled);
    // What is left of a call does nothing.
    running.call->Write("more");
    running.call->End();
    running.call->Cancel();
    running.call->ResumeReading();
  });
  peer.ReadUntil([] { return false; });
  EXPECT_EQ(peer.goaways(), 1);
}

TEST(GrpcBackoff, GrowsToItsLimitWithAFifthOfJitter) {
  GrpcBackoff backoff({}, 1);
  double expected = 1;
  for (int i = 0; i < 20; ++i) {
    const double seconds = Seconds(backoff.Next());
    EXPECT_GE(seconds, expected * 0.8 - 1e-6);
    EXPECT_LE(seconds, expected * 1.2 + 1e-6);
    expected = std::min(expected * 1.6, 120.0);
  }
  backoff.Reset();
  EXPECT_LE(Seconds(backoff.Next()), 1.2);
}

}  // namespace
}  // namespace portico::net
