// Requests of our own whose body is written while it is sent, over both versions of HTTP, to our server.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "net/grpc/grpc_test_peer.h"
#include "net/http/http1_client.h"
#include "net/http2/http2_client.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

// Writes `rest` piece by piece, each when the former is gone. Its functions run on the shard.
class Writer final : public HttpCallEvents {
 public:
  explicit Writer(std::string rest) : rest_(std::move(rest)) {}

  void OnHead(ResponseHead& head) override { status = head.status; }
  void OnBody(std::string_view bytes) override { answer.append(bytes); }
  void OnDone() override { done.set_value(true); }
  void OnFailed(CallFailure failure, const std::string& why) override {
    failed = failure;
    reason = why;
    done.set_value(false);
  }
  void OnBodyWanted() override {
    if (++wanted == 1 && before_first) before_first();
    if (given_ == rest_.size()) return call->EndBody();
    const std::string_view piece = std::string_view(rest_).substr(given_, 100000);
    given_ += piece.size();
    call->WriteBody(piece);
  }

  std::function<void()> before_first;  // of the pieces
  std::unique_ptr<HttpCall> call;
  std::promise<bool> done;
  int status = 0;
  std::string answer;
  std::atomic<int> wanted{0};
  CallFailure failed = CallFailure::kConnect;
  std::string reason;

 private:
  const std::string rest_;
  size_t given_ = 0;
};

class OpenRequest : public testing::TestWithParam<bool> {
 protected:
  OpenRequest() { shard_.Start(); }
  ~OpenRequest() override {
    Run([this] { client_.reset(); });
    shard_.Stop();
  }
  void Run(const std::function<void()>& task) {
    std::promise<void> ran;
    shard_.Post([&] {
      task();
      ran.set_value();
    });
    ran.get_future().wait();
  }
  void ConnectTo(int port) {
    Run([this, port] {
      const ClientTarget target = {
          .host = "127.0.0.1", .port = port, .tls = nullptr, .tls_name = {}};
      if (GetParam()) {
        client_ = std::make_unique<Http2Client>(shard_, target, Http2ClientOptions());
      } else {
        client_ = std::make_unique<Http1Client>(shard_, target, Http1ClientOptions());
      }
    });
  }
  // `length` < 0: in chunks.
  bool Post(Writer& writer, const std::string& first, int64_t length) {
    Run([&] {
      HttpCallRequest request;
      request.head = "POST /p HTTP/1.1\r\nhost: there\r\n" +
                     (length < 0 ? std::string("transfer-encoding: chunked")
                                 : "content-length: " + std::to_string(length)) +
                     "\r\n\r\n";
      request.body = std::make_shared<const std::string>(first);
      request.body_open = true;
      request.chunked = length < 0;
      writer.call = client_->StartCall(std::move(request), writer, /*fresh=*/true);
    });
    const bool done = writer.done.get_future().get();
    Run([&] { writer.call.reset(); });
    return done;
  }

  Shard shard_{7};
  std::unique_ptr<HttpClient> client_;
};

INSTANTIATE_TEST_SUITE_P(BothVersions, OpenRequest, testing::Bool(),
                         [](const auto& one) { return one.param ? "Http2" : "Http1"; });

TEST_P(OpenRequest, ArrivesWholeWithALengthAndWithout) {
  TestServer server;
  ConnectTo(server.port());
  const std::string first(300000, 'f');
  const std::string rest(5000000, 'r');
  for (const int64_t length : {static_cast<int64_t>(first.size() + rest.size()), int64_t{-1}}) {
    Writer writer(rest);
    ASSERT_TRUE(Post(writer, first, length)) << writer.reason;
    EXPECT_EQ(writer.status, 200);
    EXPECT_TRUE(writer.answer == "POST /p? [" + first + rest + "]") << writer.answer.size();
    EXPECT_GE(writer.wanted, 51);
  }
}

TEST_P(OpenRequest, ThatHasNoRestAfterAllEnds) {
  TestServer server;
  ConnectTo(server.port());
  Writer writer("");
  ASSERT_TRUE(Post(writer, "first", -1)) << writer.reason;
  EXPECT_EQ(writer.answer, "POST /p? [first]");
}

TEST_P(OpenRequest, WaitsForAServerThatDoesNotRead) {
  // What was written went into memory as fast as it came.
  ServerOptions options;
  options.max_body_bytes = 512 << 20;
  options.check_head = [](HttpRequest&) {
    HeadVerdict verdict;
    verdict.whole_body_bytes = 64 << 10;
    return verdict;
  };
  std::unique_ptr<Exchange> held;
  std::atomic<bool> came{false};
  TestServer server(
      [&](std::unique_ptr<Exchange> exchange) {
        held = std::move(exchange);
        came = true;
      },
      options);
  ConnectTo(server.port());
  Writer writer(std::string(size_t{256} << 20, 'r'));
  std::thread refuse([&] {
    TestServer::WaitFor([&] { return came.load(); });
    server.OnShard([&] {
      HttpResponse response;
      response.status = 403;
      response.body = "no";
      held->Respond(std::move(response));
      held.reset();
    });
  });
  EXPECT_TRUE(Post(writer, std::string(200000, 'f'), (int64_t{256} << 20) + 200000))
      << writer.reason;
  refuse.join();
  EXPECT_EQ(writer.status, 403);
  EXPECT_EQ(writer.answer, "no");
  // The kernel's buffers take some; the rest was never asked for.
  EXPECT_LT(writer.wanted, 1000);
}

TEST_P(OpenRequest, IsAnsweredByAServerThatHasClosedBehindItsAnswer) {
  // The next write failed, and what the server had said before it closed was not read any more.
  if (GetParam()) GTEST_SKIP() << "the answer is written by hand";
  TestListener listener;
  ConnectTo(listener.port());
  std::promise<void> first_taken;
  std::promise<void> closed;
  Writer writer(std::string(size_t{16} << 20, 'r'));
  writer.before_first = [&] {
    first_taken.set_value();
    closed.get_future().wait();
  };
  std::thread serve([&] {
    const int fd = listener.Accept();
    first_taken.get_future().wait();
    const std::string_view answer = "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno";
    EXPECT_EQ(send(fd, answer.data(), answer.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(answer.size()));
    close(fd);  // with unread input: the connection is reset
    closed.set_value();
  });
  EXPECT_TRUE(Post(writer, std::string(200000, 'f'), (int64_t{16} << 20) + 200000))
      << writer.reason;
  serve.join();
  EXPECT_EQ(writer.status, 403);
  EXPECT_EQ(writer.answer, "no");
}

TEST_P(OpenRequest, FailsOnceIfTheServerGoes) {
  ServerOptions options;
  options.check_head = [](HttpRequest&) {
    HeadVerdict verdict;
    verdict.whole_body_bytes = 64 << 10;
    return verdict;
  };
  TestServer server([&](std::unique_ptr<Exchange> exchange) { exchange->Cut(); }, options);
  ConnectTo(server.port());
  Writer writer(std::string(size_t{16} << 20, 'r'));
  EXPECT_FALSE(Post(writer, std::string(200000, 'f'), (int64_t{16} << 20) + 200000));
  EXPECT_EQ(writer.failed, CallFailure::kLost) << writer.reason;
}

}  // namespace
}  // namespace portico::net
