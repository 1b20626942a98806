// What a broken or hostile server does to the gRPC client: the call gets a status that says what
// was wrong, and the channel goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "net/grpc/grpc_channel.h"
#include "net/grpc/grpc_test_client.h"
#include "net/grpc/grpc_test_peer.h"
#include "net/http2/http2_test_client.h"

namespace portico::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const GrpcCallOptions kCall = {.path = "/a.B/C"};
const Headers kOk = {{"grpc-status", "0"}};

class GrpcClientAttackTest : public testing::Test {
 protected:
  explicit GrpcClientAttackTest(GrpcChannelOptions options = ToPort(0)) {
    options.port = listener_.port();
    options.max_message_bytes = 1 << 20;
    options.max_head_bytes = 16 << 10;
    client_ = std::make_unique<ClientLoop>(std::move(options));
    call_ = &client_->Start(kCall);
  }

  // Lets `answer` deal with a call's stream; the status that it ends with.
  Status StatusAfter(const std::function<void(TestPeer&, int)>& answer) {
    if (peer_ == nullptr) peer_ = std::make_unique<TestPeer>(listener_.Accept());
    answer(*peer_, peer_->WaitForRequest(next_++));
    return client_->WaitForEnd(*call_);
  }
  StatusCode CodeAfter(const std::function<void(TestPeer&, int)>& answer) {
    return StatusAfter(answer).code();
  }
  // The same connection, or another, still serves.
  void ExpectChannelWorks() {
    call_ = &client_->Start(kCall);
    if (peer_ == nullptr) {
      peer_ = std::make_unique<TestPeer>(listener_.Accept());
      next_ = 0;
    }
    EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) { peer.Answer(id, "answer"); }),
              StatusCode::kOk);
  }

  TestListener listener_;
  std::unique_ptr<ClientLoop> client_;
  std::unique_ptr<TestPeer> peer_;
  RecordedCall* call_;
  size_t next_ = 0;
};

TEST_F(GrpcClientAttackTest, ServerThatDiesWithinAStreamIsUnavailable) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              peer.Head(id);
              peer.Message(id, "first");
              peer.Close();
            }),
            StatusCode::kUnavailable);
  peer_.reset();
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, HalfAMessageAtTheEndIsAnError) {
  const Status status = StatusAfter([](TestPeer& peer, int id) {
    peer.Head(id);
    peer.Message(id, "whole");
    peer.Data(id, std::string("\0\0\0\0\x09half", 9));
    peer.Trailers(id, kOk);
  });
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(MessageOf(status), HasSubstr("is incomplete"));
  EXPECT_THAT(call_->messages, ElementsAre("whole"));
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, MessageOverTheLimitIsRefused) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              peer.Head(id);
              peer.Data(id, std::string("\0\x7f\xff\xff\xff", 5));
            }),
            StatusCode::kResourceExhausted);
  peer_->WaitForClose(1);
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, CompressedBombIsRefused) {
  std::string bomb;
  AppendGrpcMessage(std::string(32 << 20, '\0'), GrpcEncoding::kGzip, &bomb);
  EXPECT_EQ(CodeAfter([&](TestPeer& peer, int id) {
              peer.Head(id, {{"grpc-encoding", "gzip"}});
              peer.Data(id, bomb);
            }),
            StatusCode::kResourceExhausted);
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, BytesThatAreNoMessageAreAnError) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              peer.Head(id);
              peer.Data(id, "not a message");
            }),
            StatusCode::kInternal);
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, EncodingThatIsNotSupportedIsAnError) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              peer.Head(id, {{"grpc-encoding", "snappy"}});
              peer.Message(id, "x");
            }),
            StatusCode::kInternal);
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, AnswerWithoutTrailersIsUnknown) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              peer.Head(id);
              peer.Message(id, "x");
              peer.EndData(id);
            }),
            StatusCode::kUnknown);
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, TrailersWithoutOrWithABadStatusAreUnknown) {
  for (const Headers& trailers :
       {Headers{{"x", "y"}}, Headers{{"grpc-status", ""}}, Headers{{"grpc-status", "ok"}},
        Headers{{"grpc-status", "-1"}}, Headers{{"grpc-status", "99"}}}) {
    EXPECT_EQ(CodeAfter([&](TestPeer& peer, int id) {
                peer.Head(id);
                peer.Trailers(id, trailers);
              }),
              StatusCode::kUnknown);
    ExpectChannelWorks();
    call_ = &client_->Start(kCall);
  }
}

TEST_F(GrpcClientAttackTest, TrailersWithBadBinaryMetadataAreAnError) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              peer.Head(id);
              peer.Trailers(id, {{"grpc-status", "0"}, {"k-bin", "?"}});
            }),
            StatusCode::kInternal);
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, AnswerOfAWebServerIsMappedByItsHttpStatus) {
  const Status status = StatusAfter([](TestPeer& peer, int id) {
    peer.Head(id, {}, "503", "text/html");
    peer.Data(id, "<html>");
  });
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(MessageOf(status), "HTTP status 503, content-type text/html");
  ExpectChannelWorks();

  call_ = &client_->Start(kCall);
  EXPECT_EQ(
      CodeAfter([](TestPeer& peer, int id) { peer.TrailersOnly(id, {}, "404", "text/plain"); }),
      StatusCode::kUnimplemented);
  call_ = &client_->Start(kCall);
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              peer.Head(id, {}, "200", "text/html");
              peer.Data(id, "<html>");
            }),
            StatusCode::kUnknown);
}

TEST_F(GrpcClientAttackTest, GrpcStatusCountsMoreThanTheHttpStatus) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              peer.TrailersOnly(id, {{"grpc-status", "7"}}, "503");
            }),
            StatusCode::kPermissionDenied);
}

TEST_F(GrpcClientAttackTest, ResetIsMappedByItsError) {
  struct Case {
    uint32_t error;
    StatusCode code;
  };
  for (const Case& each :
       {Case{NGHTTP2_NO_ERROR, StatusCode::kInternal}, Case{NGHTTP2_CANCEL, StatusCode::kCancelled},
        Case{NGHTTP2_INTERNAL_ERROR, StatusCode::kInternal},
        Case{NGHTTP2_ENHANCE_YOUR_CALM, StatusCode::kResourceExhausted},
        Case{NGHTTP2_INADEQUATE_SECURITY, StatusCode::kPermissionDenied}}) {
    EXPECT_EQ(CodeAfter([&](TestPeer& peer, int id) { peer.Reset(id, each.error); }), each.code);
    call_ = &client_->Start(kCall);
  }
}

TEST_F(GrpcClientAttackTest, MetadataOverTheLimitIsRefused) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              Headers many;
              for (int i = 0; i < 20; ++i) many.emplace_back("x-much", std::string(2000, 'x'));
              peer.Head(id, many);
            }),
            StatusCode::kResourceExhausted);
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, StreamThatIsGoneIsNotMissed) {
  EXPECT_EQ(CodeAfter([&](TestPeer& peer, int id) {
              peer.Head(id);
              client_->On([&] { call_->call->Cancel(); });
              for (int i = 0; i < 100; ++i) peer.Message(id, "late");
              peer.Trailers(id, kOk);
            }),
            StatusCode::kCancelled);
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, ServerThatSpeaksHttp1IsUnavailable) {
  const int fd = listener_.Accept();
  const std::string_view answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
  send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
  EXPECT_EQ(client_->WaitForEnd(*call_).code(), StatusCode::kUnavailable);
  close(fd);
}

TEST_F(GrpcClientAttackTest, FramesThatBreakHttp2LoseOnlyTheirConnection) {
  for (const std::string& bytes :
       {Frame(0, 0, 0, "data on stream 0"), Frame(1, 4, 1, "\xff\xff\xff\xff"),
        Frame(8, 0, 0, std::string(4, '\0')), Frame(6, 0, 0, "short"), Frame(1, 4, 2, "\x88"),
        std::string(100, '\xff')}) {
    EXPECT_EQ(CodeAfter([&](TestPeer& peer, int) { peer.SendRaw(bytes); }),
              StatusCode::kUnavailable);
    peer_.reset();
    // Without an answer it was a failed attempt; the next has to wait for its turn.
    client_ = std::make_unique<ClientLoop>(ToPort(listener_.port()));
    ExpectChannelWorks();
    call_ = &client_->Start(kCall);
  }
}

TEST_F(GrpcClientAttackTest, StormOfGoawaysIsOne) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              for (int i = 0; i < 1000; ++i) peer.Goaway(id);
              peer.Answer(id, "answer");
            }),
            StatusCode::kOk);
  peer_.reset();
  ExpectChannelWorks();
}

TEST_F(GrpcClientAttackTest, FloodOfSettingsAndPingsEndsNothing) {
  EXPECT_EQ(CodeAfter([](TestPeer& peer, int id) {
              for (int i = 0; i < 500; ++i) {
                peer.SetMaxStreams(100 + static_cast<uint32_t>(i));
                nghttp2_submit_ping(peer.session(), 0, nullptr);
                peer.Flush();
                if (i % 50 == 0) peer.ReadUntil([] { return true; });
              }
              peer.Answer(id, "answer");
            }),
            StatusCode::kOk);
  ExpectChannelWorks();
}

}  // namespace
}  // namespace portico::net
