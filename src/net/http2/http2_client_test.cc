// The HTTP/2 client before a server whose every frame the test decides.
#include "net/http2/http2_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "net/grpc/grpc_test_peer.h"
#include "net/loop/run_on_shard_for_test.h"

namespace portico::net {
namespace {

// A call and what it was told. Its functions run on the shard.
class Recorded final : public HttpCallEvents {
 public:
  void OnHead(ResponseHead& head) override {
    const MutexLock lock(&mutex);
    heads.push_back(head);
  }
  void OnBody(std::string_view bytes) override {
    const MutexLock lock(&mutex);
    body.append(bytes);
  }
  void OnDone() override {
    const MutexLock lock(&mutex);
    ++ends;
  }
  void OnFailed(CallFailure failure, const std::string& why) override {
    const MutexLock lock(&mutex);
    ++ends;
    failed = failure;
    reason = why;
  }
  template <typename Condition>
  bool WaitFor(Condition true_now) {
    for (int i = 0; i < kTestPatience * 1000; ++i) {
      {
        const MutexLock lock(&mutex);
        if (true_now()) return true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  bool WaitForEnd() {
    return WaitFor([this] { return ends > 0; });
  }

  std::unique_ptr<HttpCall> call;  // the shard's
  Mutex mutex;                     // guards what follows until the call has ended
  std::vector<ResponseHead> heads;
  std::string body;
  int ends = 0;
  std::optional<CallFailure> failed;
  std::string reason;
};

class Http2ClientTest : public testing::Test {
 protected:
  Http2ClientTest() {
    shard_.Start();
    Run([this] {
      Http2ClientOptions options;
      options.max_head_bytes = 8 << 10;
      options.idle_life = std::chrono::seconds(60);
      options.stream_window = 16 << 10;
      client_ = std::make_unique<Http2Client>(
          shard_,
          ClientTarget{
              .host = "127.0.0.1", .port = listener_.port(), .tls = nullptr, .tls_name = {}},
          options);
    });
  }
  ~Http2ClientTest() override {
    Run([this] {
      for (Recorded& one : calls_) one.call.reset();
      client_.reset();
    });
    shard_.Stop();
  }

  void Run(const std::function<void()>& task) { RunOnShard(shard_, task); }
  Recorded& Ask(const std::string& body = "", const std::string& line = "GET /a?b=c") {
    Recorded& made = calls_.emplace_back();
    Run([&] {
      HttpCallRequest request;
      request.head =
          line + " HTTP/1.1\r\nhost: there:80\r\nx-one: 1\r\n" +
          (body.empty() ? "" : "content-length: " + std::to_string(body.size()) + "\r\n") + "\r\n";
      if (!body.empty()) request.body = std::make_shared<const std::string>(body);
      made.call = client_->StartCall(std::move(request), made, false);
    });
    return made;
  }
  void Drop(Recorded& call) {
    Run([&] { call.call.reset(); });
  }

  TestListener listener_;
  Shard shard_{0};
  std::unique_ptr<Http2Client> client_;
  std::deque<Recorded> calls_;
};

TEST_F(Http2ClientTest, CallsShareAConnectionAndAreAnsweredInAnyOrder) {
  Recorded& first = Ask("a body", "POST /first");
  Recorded& second = Ask();
  TestPeer peer(listener_.Accept());
  const int one = peer.WaitForRequest(0);
  const int two = peer.WaitForRequest(1);
  EXPECT_EQ(peer.request(one).Header(":method"), "POST");
  EXPECT_EQ(peer.request(one).body, "a body");
  EXPECT_EQ(peer.request(one).Header("content-length"), "6");
  EXPECT_EQ(peer.request(two).Header(":path"), "/a?b=c");
  EXPECT_EQ(peer.request(two).Header(":authority"), "there:80");
  EXPECT_EQ(peer.request(two).Header("x-one"), "1");
  EXPECT_EQ(peer.request(two).Header("host"), "");
  peer.Head(two, {{"content-length", "6"}}, "201", "text/plain");
  peer.Data(two, "second");
  peer.EndData(two);
  ASSERT_TRUE(second.WaitForEnd());
  EXPECT_EQ(second.heads.at(0).status, 201);
  EXPECT_EQ(second.heads.at(0).length, 6);
  EXPECT_EQ(second.heads.at(0).Header("content-type"), "text/plain");
  EXPECT_EQ(second.body, "second");
  EXPECT_FALSE(second.failed);
  EXPECT_EQ(first.ends, 0);
  peer.Head(one, {}, "200", "");
  peer.Data(one, "fir");
  ASSERT_TRUE(first.WaitFor([&] { return first.body == "fir"; })) << "pieces come at once";
  peer.Data(one, "st");
  peer.Trailers(one, {{"x-trailer", "1"}});
  ASSERT_TRUE(first.WaitForEnd());
  EXPECT_EQ(first.body, "first");
  EXPECT_EQ(first.heads.size(), 1u);
}

TEST_F(Http2ClientTest, AnAnswerWithoutABodyEndsWithItsHead) {
  Recorded& call = Ask();
  TestPeer peer(listener_.Accept());
  peer.TrailersOnly(peer.WaitForRequest(), {}, "204", "");
  ASSERT_TRUE(call.WaitForEnd());
  EXPECT_EQ(call.heads.at(0).status, 204);
  EXPECT_EQ(call.heads.at(0).length, 0);
}

TEST_F(Http2ClientTest, APausedCallHoldsItsServerBackAndNoOtherCall) {
  Recorded& slow = Ask();
  TestPeer peer(listener_.Accept());
  const int one = peer.WaitForRequest(0);
  Run([&] { slow.call->Pause(); });
  peer.Head(one, {}, "200", "");
  peer.Data(one, std::string(100 << 10, 'x'));
  peer.EndData(one);
  Recorded& quick = Ask();
  const int two = peer.WaitForRequest(1);
  peer.Head(two, {}, "200", "");
  peer.Data(two, std::string(10 << 10, 'y'));
  peer.EndData(two);
  EXPECT_TRUE(quick.WaitForEnd());
  EXPECT_EQ(quick.body.size(), size_t{10} << 10);
  {
    const MutexLock lock(&slow.mutex);
    EXPECT_LE(slow.body.size(), size_t{16} << 10) << "no more than its window";
    EXPECT_EQ(slow.ends, 0);
  }
  Run([&] { slow.call->Resume(); });
  peer.WaitForClose(one);
  EXPECT_TRUE(slow.WaitForEnd());
  EXPECT_EQ(slow.body.size(), size_t{100} << 10);
}

TEST_F(Http2ClientTest, ADroppedCallResetsItsStreamAndTheConnectionGoesOn) {
  Recorded& gone = Ask();
  TestPeer peer(listener_.Accept());
  const int one = peer.WaitForRequest(0);
  Drop(gone);
  peer.WaitForClose(one);
  EXPECT_EQ(peer.request(one).error, static_cast<uint32_t>(NGHTTP2_CANCEL));
  Recorded& next = Ask();
  peer.TrailersOnly(peer.WaitForRequest(1), {}, "200", "");
  EXPECT_TRUE(next.WaitForEnd());
  EXPECT_EQ(gone.ends, 0);
}

TEST_F(Http2ClientTest, MoreCallsThanTheServerAllowsOpenAnotherConnection) {
  Recorded& first = Ask();
  TestPeer one(listener_.Accept(), /*max_streams=*/1);
  const int id = one.WaitForRequest();
  Recorded& second = Ask();
  TestPeer two(listener_.Accept());
  two.TrailersOnly(two.WaitForRequest(), {}, "200", "");
  EXPECT_TRUE(second.WaitForEnd());
  one.TrailersOnly(id, {}, "200", "");
  EXPECT_TRUE(first.WaitForEnd());
}

TEST_F(Http2ClientTest, WhatAServerHasNotLookedAtCanBeSentAgain) {
  Recorded& refused = Ask();
  Recorded& beyond = Ask();
  TestPeer peer(listener_.Accept());
  const int one = peer.WaitForRequest(0);
  peer.WaitForRequest(1);
  peer.Reset(one, NGHTTP2_REFUSED_STREAM);
  ASSERT_TRUE(refused.WaitForEnd());
  EXPECT_EQ(refused.failed, CallFailure::kStale);
  peer.Goaway(one);
  ASSERT_TRUE(beyond.WaitForEnd());
  EXPECT_EQ(beyond.failed, CallFailure::kStale);
  Recorded& again = Ask();
  TestPeer other(listener_.Accept());
  other.TrailersOnly(other.WaitForRequest(), {}, "200", "");
  EXPECT_TRUE(again.WaitForEnd());
  EXPECT_FALSE(again.failed);
}

TEST_F(Http2ClientTest, EachWayToBreakOffIsTold) {
  Recorded& lost = Ask();
  Recorded& reset = Ask();
  {
    TestPeer peer(listener_.Accept());
    const int one = peer.WaitForRequest(0);
    const int two = peer.WaitForRequest(1);
    peer.Head(one, {}, "200", "");
    peer.Data(one, "half");
    peer.Reset(two, NGHTTP2_INTERNAL_ERROR);
    ASSERT_TRUE(reset.WaitForEnd());
    EXPECT_EQ(reset.failed, CallFailure::kLost);
    ASSERT_TRUE(lost.WaitFor([&] { return lost.body == "half"; }));
  }
  ASSERT_TRUE(lost.WaitForEnd());
  EXPECT_EQ(lost.failed, CallFailure::kLost);
  Recorded& large = Ask();
  Recorded& wrong = Ask();
  TestPeer peer(listener_.Accept());
  peer.Head(peer.WaitForRequest(0), {{"x-large", std::string(10000, 'x')}}, "200", "");
  ASSERT_TRUE(large.WaitForEnd());
  EXPECT_EQ(large.failed, CallFailure::kMalformed);
  const int four = peer.WaitForRequest(1);
  peer.Head(four, {{"content-length", "3"}}, "200", "");
  peer.Data(four, "more than three");
  peer.EndData(four);
  ASSERT_TRUE(wrong.WaitForEnd());
  EXPECT_EQ(wrong.failed, CallFailure::kMalformed);
}

TEST_F(Http2ClientTest, AServerOfAnotherProtocolIsSaidToBe) {
  Recorded& call = Ask();
  const int fd = listener_.Accept();
  constexpr std::string_view kHttp1 = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
  EXPECT_EQ(send(fd, kHttp1.data(), kHttp1.size(), 0), static_cast<ssize_t>(kHttp1.size()));
  EXPECT_TRUE(call.WaitForEnd());
  EXPECT_EQ(call.failed, CallFailure::kMalformed);
  close(fd);
  listener_.Close();
  Recorded& nobody = Ask();
  EXPECT_TRUE(nobody.WaitForEnd());
  EXPECT_EQ(nobody.failed, CallFailure::kConnect);
}

TEST_F(Http2ClientTest, ALargeBodyLeavesAsTheServerTakesIt) {
  std::string body(3 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i / 1000 % 26);
  Recorded& call = Ask(body, "POST /large");
  TestPeer peer(listener_.Accept());
  const int id = peer.WaitForRequest();
  EXPECT_EQ(peer.request(id).body, body);
  peer.TrailersOnly(id, {}, "200", "");
  EXPECT_TRUE(call.WaitForEnd());
  EXPECT_FALSE(call.failed);
}

}  // namespace
}  // namespace portico::net
