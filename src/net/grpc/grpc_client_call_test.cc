#include "net/grpc/grpc_client_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/sanitized_for_test.h"
#include "net/grpc/grpc_test_client.h"
#include "net/grpc/grpc_test_peer.h"
#include "net/grpc/grpc_unary_call.h"

namespace portico::net {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Headers kOk = {{"grpc-status", "0"}};

// A client and the server's end of its first connection.
class GrpcClientCallTest : public testing::Test {
 protected:
  explicit GrpcClientCallTest(GrpcChannelOptions options = ToPort(0)) {
    options.port = listener_.port();
    client_ = std::make_unique<ClientLoop>(std::move(options));
  }

  // The first call, and the peer that it comes to.
  RecordedCall& Start(GrpcCallOptions options = {.path = "/a.B/C"},
                      std::vector<std::string> messages = {"request"}, bool end = true) {
    RecordedCall& call = client_->Start(std::move(options), std::move(messages), end);
    if (peer_ == nullptr) peer_ = std::make_unique<TestPeer>(listener_.Accept(), 100, window_);
    return call;
  }

  TestListener listener_;
  std::unique_ptr<ClientLoop> client_;
  std::unique_ptr<TestPeer> peer_;
  uint32_t window_ = 0;  // that the peer grants to each stream
};

TEST_F(GrpcClientCallTest, SaysWhatGrpcAsksFor) {
  RecordedCall& call =
      Start({.path = "/a.B/C", .metadata = {{"x-a", "1"}, {"k-bin", std::string("\0\xff", 2)}}});
  const int id = peer_->WaitForRequest();
  PeerRequest& request = peer_->request(id);
  EXPECT_EQ(request.Header(":method"), "POST");
  EXPECT_EQ(request.Header(":scheme"), "http");
  EXPECT_EQ(request.Header(":path"), "/a.B/C");
  EXPECT_EQ(request.Header(":authority"), "127.0.0.1:" + std::to_string(listener_.port()));
  EXPECT_EQ(request.Header("te"), "trailers");
  EXPECT_EQ(request.Header("content-type"), "application/grpc");
  EXPECT_EQ(request.Header("grpc-accept-encoding"), "identity,gzip");
  EXPECT_THAT(request.Header("user-agent"), testing::StartsWith("grpc-portico/"));
  EXPECT_EQ(request.Header("x-a"), "1");
  EXPECT_EQ(request.Header("k-bin"), "AP8");
  EXPECT_EQ(request.Header("grpc-timeout"), "");
  EXPECT_EQ(request.body, std::string("\0\0\0\0\x07request", 12));
  peer_->Answer(id, "answer");
  EXPECT_TRUE(client_->WaitForEnd(call).ok());
  EXPECT_THAT(call.messages, ElementsAre("answer"));
}

TEST_F(GrpcClientCallTest, TellsMetadataOfHeadAndTrailers) {
  RecordedCall& call = Start();
  const int id = peer_->WaitForRequest();
  peer_->Head(id, {{"x-head", "1"}, {"h-bin", "Zg==,Zm8"}});
  peer_->Trailers(id, {{"grpc-status", "0"}, {"x-trailer", "2"}, {"t-bin", "Zm9v"}});
  EXPECT_TRUE(client_->WaitForEnd(call).ok());
  EXPECT_THAT(call.head, ElementsAre(std::pair("x-head", "1"), std::pair("h-bin", "f"),
                                     std::pair("h-bin", "fo")));
  EXPECT_THAT(call.trailers, ElementsAre(std::pair("x-trailer", "2"), std::pair("t-bin", "foo")));
  EXPECT_THAT(call.messages, IsEmpty());
}

TEST_F(GrpcClientCallTest, StreamsBothWays) {
  RecordedCall& call = Start({.path = "/a.B/C"}, {"one"}, false);
  const int id = peer_->WaitForHead();
  peer_->Head(id);
  peer_->Message(id, "first");
  client_->WaitFor([&] { return call.messages.size() == 1; });
  client_->On([&] {
    call.call->Write("two");
    call.call->End();
  });
  peer_->WaitForRequest();
  EXPECT_EQ(peer_->request(id).body, std::string("\0\0\0\0\x03one\0\0\0\0\x03two", 16));
  peer_->Message(id, "second");
  peer_->Trailers(id, kOk);
  EXPECT_TRUE(client_->WaitForEnd(call).ok());
  EXPECT_THAT(call.messages, ElementsAre("first", "second"));
}

TEST_F(GrpcClientCallTest, TakesAnAnswerOfTrailersOnly) {
  RecordedCall& call = Start();
  peer_->TrailersOnly(peer_->WaitForRequest(),
                      {{"grpc-status", "5"}, {"grpc-message", "no %E2%98%BA%"}, {"x-a", "1"}});
  EXPECT_EQ(client_->WaitForEnd(call).code(), StatusCode::kNotFound);
  EXPECT_EQ(MessageOf(call.status), "no ☺%");
  EXPECT_THAT(call.trailers, ElementsAre(std::pair("x-a", "1")));
}

TEST_F(GrpcClientCallTest, HandsTheDetailsOfAStatusOn) {
  RecordedCall& call = Start();
  peer_->TrailersOnly(peer_->WaitForRequest(),
                      {{"grpc-status", "3"}, {"grpc-status-details-bin", "Zm9v"}});
  EXPECT_EQ(client_->WaitForEnd(call).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(call.status.GetPayload(kGrpcStatusDetails), absl::Cord("foo"));
}

TEST_F(GrpcClientCallTest, SkipsInformationalHeads) {
  RecordedCall& call = Start();
  const int id = peer_->WaitForRequest();
  const nghttp2_nv status = {reinterpret_cast<uint8_t*>(const_cast<char*>(":status")),
                             reinterpret_cast<uint8_t*>(const_cast<char*>("103")), 7, 3, 0};
  nghttp2_submit_headers(peer_->session(), 0, id, nullptr, &status, 1, nullptr);
  peer_->Flush();
  peer_->Answer(id, "answer");
  EXPECT_TRUE(client_->WaitForEnd(call).ok()) << call.status;
  EXPECT_THAT(call.messages, ElementsAre("answer"));
}

TEST_F(GrpcClientCallTest, TakesCompressedMessages) {
  RecordedCall& call = Start();
  const int id = peer_->WaitForRequest();
  std::string framed;
  AppendGrpcMessage("compressed", GrpcEncoding::kGzip, &framed);
  peer_->Head(id, {{"grpc-encoding", "gzip"}});
  peer_->Data(id, framed);
  peer_->Message(id, "plain");
  peer_->Trailers(id, kOk);
  EXPECT_TRUE(client_->WaitForEnd(call).ok());
  EXPECT_THAT(call.messages, ElementsAre("compressed", "plain"));
}

TEST_F(GrpcClientCallTest, CompressesMessagesOnRequest) {
  Start({.path = "/a.B/C", .encoding = GrpcEncoding::kGzip});
  PeerRequest& request = peer_->request(peer_->WaitForRequest());
  EXPECT_EQ(request.Header("grpc-encoding"), "gzip");
  GrpcDeframer deframer(1000);
  deframer.SetEncoding(GrpcEncoding::kGzip);
  std::string_view input = request.body;
  std::string_view message;
  EXPECT_EQ(request.body[0], 1);
  ASSERT_EQ(deframer.Next(&input, &message), GrpcDeframer::Result::kMessage);
  EXPECT_EQ(message, "request");
}

TEST_F(GrpcClientCallTest, EndsWhenTheDeadlineHasPassed) {
  // Once it is connected the request leaves in the turn in which the clock starts.
  RecordedCall& first = Start();
  peer_->Answer(peer_->WaitForRequest(0), "answer");
  EXPECT_TRUE(client_->WaitForEnd(first).ok());
  RecordedCall& call = Start({.path = "/a.B/C", .timeout = milliseconds(50)});
  const int id = peer_->WaitForRequest(1);
  EXPECT_FALSE(peer_->request(id).Header("grpc-timeout").empty());
  EXPECT_EQ(client_->WaitForEnd(call).code(), StatusCode::kDeadlineExceeded);
  peer_->WaitForClose(id);
  EXPECT_EQ(peer_->request(id).error, static_cast<uint32_t>(NGHTTP2_CANCEL));
}

TEST_F(GrpcClientCallTest, IsCancelledWhenItsHandleIsDropped) {
  RecordedCall& call = Start({.path = "/a.B/C"}, {}, false);
  const int id = peer_->WaitForHead();
  client_->On([&] { call.call.reset(); });
  peer_->WaitForClose(id);
  EXPECT_EQ(peer_->request(id).error, static_cast<uint32_t>(NGHTTP2_CANCEL));
  EXPECT_EQ(call.ends, 0);
}

TEST_F(GrpcClientCallTest, TellsThatItWasCancelled) {
  RecordedCall& call = Start({.path = "/a.B/C"}, {}, false);
  const int id = peer_->WaitForHead();
  client_->On([&] { call.call->Cancel(); });
  EXPECT_EQ(client_->WaitForEnd(call).code(), StatusCode::kCancelled);
  peer_->WaitForClose(id);
  EXPECT_EQ(peer_->request(id).error, static_cast<uint32_t>(NGHTTP2_CANCEL));
}

TEST_F(GrpcClientCallTest, MayBeDestroyedByWhatItTells) {
  RecordedCall& call = Start();
  call.on_message = [&] { call.call.reset(); };
  const int id = peer_->WaitForRequest();
  peer_->Head(id);
  peer_->Message(id, "first");
  peer_->WaitForClose(id);
  client_->On([&] {
    EXPECT_THAT(call.messages, ElementsAre("first"));
    EXPECT_EQ(call.ends, 0);
  });

  RecordedCall& second = Start();
  second.on_end = [&] { second.call.reset(); };
  peer_->Answer(peer_->WaitForRequest(1), "answer");
  EXPECT_TRUE(client_->WaitForEnd(second).ok());
}

TEST_F(GrpcClientCallTest, MayDropItsChannelInWhatItTells) {
  RecordedCall& call = Start();
  RecordedCall& other = Start();
  call.on_message = [&] { client_->DropChannel(); };
  const int id = peer_->WaitForRequest();
  peer_->WaitForRequest(1);
  peer_->Head(id);
  peer_->Message(id, "first");
  EXPECT_EQ(client_->WaitForEnd(call).code(), StatusCode::kCancelled);
  EXPECT_EQ(client_->WaitForEnd(other).code(), StatusCode::kCancelled);
  peer_->ReadUntil([] { return false; });
  EXPECT_EQ(peer_->goaways(), 1);
}

TEST_F(GrpcClientCallTest, ThatPausesStallsOnlyItsServer) {
  RecordedCall& paused = Start();
  RecordedCall& other = Start();
  client_->On([&] { paused.call->PauseReading(); });
  const int id = peer_->WaitForRequest(0);
  const int other_id = peer_->WaitForRequest(1);
  peer_->Head(id);
  // More than the whole connection may have on its way.
  const std::string message(1 << 20, 'x');
  constexpr int kMessages = 20;
  for (int i = 0; i < kMessages; ++i) peer_->Message(id, message);
  peer_->Trailers(id, kOk);
  peer_->Answer(other_id, "answer");
  // What the client grants comes to the peer only as it reads.
  peer_->ReadUntil([&] { return peer_->request(other_id).closed; });
  EXPECT_TRUE(client_->WaitForEnd(other).ok());
  client_->On([&] {
    EXPECT_THAT(paused.messages, IsEmpty());
    EXPECT_EQ(paused.ends, 0);
    paused.call->ResumeReading();
  });
  peer_->WaitForClose(id);
  EXPECT_TRUE(client_->WaitForEnd(paused).ok());
  EXPECT_EQ(paused.messages.size(), static_cast<size_t>(kMessages));
}

TEST_F(GrpcClientCallTest, TellsItsEndAfterWhatItHasKept) {
  RecordedCall& call = Start();
  call.on_message = [&] { call.call->PauseReading(); };
  const int id = peer_->WaitForRequest();
  peer_->Head(id);
  for (const char* message : {"a", "b", "c"}) peer_->Message(id, message);
  peer_->Trailers(id, kOk);
  for (size_t told = 1; told <= 3; ++told) {
    client_->WaitFor([&] { return call.messages.size() == told; });
    client_->On([&] {
      if (told < 3) {
        EXPECT_EQ(call.ends, 0);
      }
      call.call->ResumeReading();
    });
  }
  EXPECT_TRUE(client_->WaitForEnd(call).ok());
  EXPECT_THAT(call.messages, ElementsAre("a", "b", "c"));
}

TEST_F(GrpcClientCallTest, WaitsForTheServerToTakeWhatItWrites) {
  window_ = 1000;
  RecordedCall& call = Start({.path = "/a.B/C"}, {std::string(3000, 'x')}, false);
  const int id = peer_->WaitForHead();
  peer_->ReadUntil([&] { return peer_->request(id).body.size() == 1000; });
  client_->On([&] {
    call.call->TellWhenSent();
    EXPECT_EQ(call.call->unsent(), 2005u);
    EXPECT_EQ(call.sent, 0);
  });
  nghttp2_submit_window_update(peer_->session(), 0, id, 5000);
  peer_->Flush();
  client_->WaitFor([&] { return call.sent == 1; });
  client_->On([&] { EXPECT_EQ(call.call->unsent(), 0u); });
}

TEST_F(GrpcClientCallTest, SendsWhatIsMuchLargerThanAllBuffers) {
  const std::string large(size_t{kSanitized ? 8 : 20} << 20, 'x');
  RecordedCall& call = Start({.path = "/a.B/C"}, {large, "small"});
  const int id = peer_->WaitForRequest();
  EXPECT_EQ(peer_->request(id).body.size(), large.size() + 5 + 10);
  peer_->Answer(id, large);
  peer_->WaitForClose(id);
  EXPECT_TRUE(client_->WaitForEnd(call).ok());
  EXPECT_THAT(call.messages, ElementsAre(large));
}

TEST_F(GrpcClientCallTest, RefusesMetadataThatCannotBeSaid) {
  RecordedCall& call = client_->Start({.path = "/a.B/C", .metadata = {{"grpc-status", "0"}}});
  EXPECT_EQ(client_->WaitForEnd(call).code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(call.status), HasSubstr("grpc-status"));
}

TEST_F(GrpcClientCallTest, OfOneMessageHasOneAnswer) {
  struct Case {
    std::vector<std::string> messages;
    StatusCode code;
  };
  for (const Case& each : {Case{{"answer"}, StatusCode::kOk}, Case{{}, StatusCode::kInternal},
                           Case{{"a", "b"}, StatusCode::kInternal}}) {
    std::unique_ptr<GrpcUnaryCall> call;
    StatusOr<std::string> reply = Error(StatusCode::kUnknown, "not told");
    bool told = false;
    client_->On([&] {
      call = std::make_unique<GrpcUnaryCall>(client_->channel(), GrpcCallOptions{.path = "/a.B/C"},
                                             "request", [&](StatusOr<std::string> got) {
                                               reply = std::move(got);
                                               told = true;
                                             });
    });
    TestListener& listener = listener_;
    if (peer_ == nullptr) peer_ = std::make_unique<TestPeer>(listener.Accept());
    const int id = peer_->WaitForRequest(peer_->requests());
    peer_->Head(id);
    for (const std::string& message : each.messages) peer_->Message(id, message);
    peer_->Trailers(id, kOk);
    client_->WaitFor([&] { return told; });
    EXPECT_EQ(reply.status().code(), each.code) << reply.status();
    if (reply.ok()) {
      EXPECT_EQ(*reply, "answer");
    }
    client_->On([&] { call.reset(); });
  }
}

}  // namespace
}  // namespace portico::net
