// Bodies whose request comes to its handler before they are whole, over both versions of HTTP.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>

#include "net/http/exchange.h"
#include "net/http2/http2_test_client.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr size_t kWhole = 64 << 10;
constexpr size_t kBuffer = 64 << 10;  // one more may come than is allowed
constexpr size_t kMaxHeldOfBody = 256 << 10;

std::string LongBody(size_t size) {
  std::string body(size, ' ');
  for (size_t i = 0; i < size; ++i) body[i] = static_cast<char>('a' + i % 23);
  return body;
}

// One request; used on the shard, but for what is atomic.
class Upload final : public BodyReader {
 public:
  Upload(std::unique_ptr<Exchange> made, bool consumes, std::atomic<int>* closed)
      : exchange(std::move(made)), consumes_(consumes) {
    exchange->set_on_closed([this, closed] {
      left = true;
      ++*closed;
    });
    was_open = exchange->body_open();
    rest_bytes = exchange->rest_bytes();
    first = exchange->request.body.size();
    body = exchange->request.body;
    if (was_open) {
      exchange->ReadBody(*this);
    } else {
      Answer(200);
    }
  }

  void OnBodyBytes(std::string_view bytes) override {
    EXPECT_FALSE(left);
    body.append(bytes);
    held += bytes.size();
    most_held = std::max<size_t>(most_held, held);
    if (consumes_) Consume();
  }
  void OnBodyEnd() override {
    EXPECT_FALSE(left);
    EXPECT_FALSE(exchange->body_open());
    ended = true;
    Answer(200);
  }
  void OnBodyRefused(const HttpError& error) override {
    EXPECT_FALSE(left);
    refused = error.status;
    Answer(error.status);
  }
  void Consume() { exchange->ConsumeBody(held.exchange(0)); }
  void ConsumeFromNowOn() {
    consumes_ = true;
    Consume();
  }
  void Answer(int status) {
    HttpResponse response;
    response.status = status;
    response.content_type = "text/plain";
    response.body = std::to_string(body.size());
    exchange->Respond(std::move(response));
  }

  std::unique_ptr<Exchange> exchange;
  std::string body;
  bool was_open = false;
  int64_t rest_bytes = 0;
  size_t first = 0;
  std::atomic<size_t> held{0};
  std::atomic<size_t> most_held{0};
  std::atomic<bool> ended{false};
  std::atomic<int> refused{0};
  bool left = false;

 private:
  bool consumes_;
};

// Answers as soon as something of the rest comes, and goes with its exchange.
class Hasty final : public BodyReader {
 public:
  Hasty(std::unique_ptr<Exchange> exchange, std::unique_ptr<Hasty>* self)
      : exchange_(std::move(exchange)), self_(self) {
    exchange_->ReadBody(*this);
  }

  void OnBodyBytes(std::string_view) override {
    HttpResponse response;
    response.status = 403;
    exchange_->Respond(std::move(response));
    self_->reset();
  }
  void OnBodyEnd() override { ADD_FAILURE(); }
  void OnBodyRefused(const HttpError& error) override { ADD_FAILURE() << error.status; }

 private:
  const std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<Hasty>* const self_;
};

class OpenBody : public testing::Test {
 protected:
  void Serve(bool consumes = true, const std::function<void(ServerOptions&)>& change = {}) {
    ServerOptions options;
    options.check_head = [](HttpRequest&) {
      HeadVerdict verdict;
      verdict.whole_body_bytes = kWhole;
      return verdict;
    };
    if (change) change(options);
    server_ = std::make_unique<TestServer>(
        [this, consumes](std::unique_ptr<Exchange> exchange) {
          const std::string path = exchange->request.path;
          uploads_[path] = std::make_unique<Upload>(std::move(exchange), consumes, &closed_);
          ++came_;
        },
        std::move(options));
  }
  ~OpenBody() override {
    if (server_ != nullptr) server_->OnShard([this] { uploads_.clear(); });
    server_.reset();
  }
  Upload& upload(const std::string& path = "/a") { return *uploads_.at(path); }
  void WaitForUpload(int count = 1) {
    TestServer::WaitFor([this, count] { return came_ >= count; });
  }

  std::map<std::string, std::unique_ptr<Upload>> uploads_;  // the shard's, by path
  std::atomic<int> came_{0};
  std::atomic<int> closed_{0};
  std::unique_ptr<TestServer> server_;
};

std::string Head(size_t length, std::string_view path = "/a") {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}
constexpr char kChunkedHead[] = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

std::string Chunked(std::string_view body, size_t piece) {
  std::string out;
  char size[32];
  for (; !body.empty(); body.remove_prefix(std::min(piece, body.size()))) {
    const std::string_view chunk = body.substr(0, piece);
    std::snprintf(size, sizeof size, "%zx\r\n", chunk.size());
    out.append(size).append(chunk).append("\r\n");
  }
  return out + "0\r\n\r\n";
}

TEST_F(OpenBody, OfAKnownLengthComesInPiecesAndTheConnectionStays) {
  Serve();
  TestClient client(server_->port());
  const std::string body = LongBody(3 << 20);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(client.Ask(Head(body.size()) + body), EndsWith("\r\n\r\n3145728"));
    server_->OnShard([&] {
      EXPECT_TRUE(upload().was_open);
      EXPECT_GT(upload().first, kWhole);
      EXPECT_EQ(upload().rest_bytes, static_cast<int64_t>(body.size() - upload().first));
      EXPECT_EQ(upload().body, body);
    });
  }
  EXPECT_EQ(server_->server().stats().accepted, 1u);
}

TEST_F(OpenBody, InChunksComesInPieces) {
  Serve();
  TestClient client(server_->port());
  const std::string body = LongBody(1 << 20);
  for (const size_t piece : {size_t{100}, size_t{70000}, body.size()}) {
    EXPECT_THAT(client.Ask(kChunkedHead + Chunked(body, piece)), EndsWith("\r\n\r\n1048576"));
    server_->OnShard([&] {
      EXPECT_TRUE(upload().was_open);
      EXPECT_EQ(upload().rest_bytes, -1);
      EXPECT_EQ(upload().body, body);
    });
  }
  EXPECT_EQ(server_->server().stats().accepted, 1u);
}

TEST_F(OpenBody, ThatIsShortComesWhole) {
  Serve();
  TestClient client(server_->port());
  const std::string body = LongBody(kWhole);
  EXPECT_THAT(client.Ask(Head(body.size()) + body), EndsWith("\r\n\r\n65536"));
  EXPECT_THAT(client.Ask(kChunkedHead + Chunked(body, 1000)), EndsWith("\r\n\r\n65536"));
  Http2TestClient other(server_->port());
  EXPECT_EQ(other.Ask("POST", "/b", {}, body).body, "65536");
  server_->OnShard([&] {
    EXPECT_FALSE(upload("/a").was_open);
    EXPECT_FALSE(upload("/b").was_open);
  });
}

TEST_F(OpenBody, IsFollowedByTheNextRequestInTheSameBytes) {
  Serve();
  TestClient client(server_->port());
  const std::string body = LongBody(200000);
  client.Send(Head(body.size()) + body + Head(1, "/b") + "x");
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\n200000"));
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\n1"));
}

TEST_F(OpenBody, WaitsForAReaderThatConsumesNothing) {
  // A body that was larger than its consumer's memory was read all the same.
  Serve(/*consumes=*/false);
  const std::string body = LongBody(16 << 20);
  TestClient client(server_->port());
  std::thread sender([&] { client.Send(Head(body.size()) + body); });
  WaitForUpload();
  TestServer::WaitFor([&] { return upload().held >= kMaxHeldOfBody; });
  server_->OnShard([&] { upload().ConsumeFromNowOn(); });
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\n16777216"));
  sender.join();
  EXPECT_LE(upload().most_held, kMaxHeldOfBody + kBuffer);
}

TEST_F(OpenBody, IsNotHeldAgainstABudgetThatItDoesNotTake) {
  Serve(true, [](ServerOptions& options) {
    options.max_inflight_body_bytes = 512 << 10;
    options.max_body_bytes = 64 << 20;
  });
  TestClient client(server_->port());
  const std::string body = LongBody(8 << 20);
  EXPECT_THAT(client.Ask(Head(body.size()) + body), EndsWith("\r\n\r\n8388608"));
  Http2TestClient other(server_->port());
  EXPECT_EQ(other.Ask("POST", "/b", {}, body).body, "8388608");
}

TEST_F(OpenBody, ThatGrowsOverItsLimitIsRefusedInTheMiddle) {
  Serve(true, [](ServerOptions& options) { options.max_body_bytes = 1 << 20; });
  TestClient client(server_->port());
  const std::string body = LongBody(1500000);
  std::thread sender([&] { client.Send(kChunkedHead + Chunked(body, 50000)); });
  const std::string answer = client.ReadAnswer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(answer, HasSubstr("connection: close"));
  sender.join();
  Http2TestClient other(server_->port());
  const int id = other.Send("POST", "/b", {}, body);
  EXPECT_EQ(other.Wait(id).status, 413);
  server_->OnShard([&] {
    EXPECT_EQ(upload("/a").refused, 413);
    EXPECT_EQ(upload("/b").refused, 413);
    EXPECT_LE(upload("/b").body.size(), size_t{1} << 20);
  });
}

TEST_F(OpenBody, WithABrokenChunkIsRefused) {
  Serve();
  TestClient client(server_->port());
  const std::string body = LongBody(200000);
  std::string sent = Chunked(body, 1000);
  sent.resize(sent.size() - 5);
  EXPECT_THAT(client.Ask(kChunkedHead + sent + "zz\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(upload().refused, 400);
}

TEST_F(OpenBody, ThatStopsComingIsRefused) {
  Serve(true,
        [](ServerOptions& options) { options.body_timeout = std::chrono::milliseconds(200); });
  TestClient client(server_->port());
  client.Send(Head(1 << 20) + LongBody(100000));
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 408"));
  Http2TestClient other(server_->port());
  const int id = other.Send("POST", "/b", {}, LongBody(100000), /*end=*/false);
  EXPECT_EQ(other.Wait(id).status, 408);
}

TEST_F(OpenBody, ThatItsReaderHoldsBackIsNotTooSlow) {
  Serve(/*consumes=*/false,
        [](ServerOptions& options) { options.body_timeout = std::chrono::seconds(1); });
  TestClient client(server_->port());
  const std::string body = LongBody(4 << 20);
  std::thread sender([&] { client.Send(Head(body.size()) + body); });
  Http2TestClient other(server_->port());
  const int id = other.Send("POST", "/b", {}, body);
  other.ReadUntil([&] { return came_ >= 2; });
  TestServer::WaitFor([&] { return upload("/a").held >= kMaxHeldOfBody && upload("/b").held > 0; });
  // Several periods pass, as other connections show.
  for (int i = 0; i < 3; ++i) {
    TestClient slow(server_->port());
    slow.Send(Head(1 << 10, "/slow") + "x");
    EXPECT_THAT(slow.ReadAnswer(), StartsWith("HTTP/1.1 408"));
  }
  server_->OnShard([&] { upload("/a").ConsumeFromNowOn(); });
  EXPECT_THAT(client.ReadAnswer(), EndsWith("\r\n\r\n4194304"));
  sender.join();
  server_->OnShard([&] { upload("/b").ConsumeFromNowOn(); });
  EXPECT_EQ(other.Wait(id).body, "4194304");
}

TEST_F(OpenBody, MayBeAnsweredBeforeItIsThere) {
  Serve(/*consumes=*/false);
  TestClient client(server_->port());
  client.Send(Head(16 << 20) + LongBody(200000));
  WaitForUpload();
  server_->OnShard([&] { upload().Answer(403); });
  const std::string answer = client.ReadAnswer();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(answer, HasSubstr("connection: close"));
  EXPECT_EQ(client.ReadToEnd(), "");
  Http2TestClient other(server_->port());
  const int id = other.Send("POST", "/b", {}, LongBody(200000), /*end=*/false);
  other.ReadUntil([&] { return came_ >= 2; });
  server_->OnShard([&] { upload("/b").Answer(403); });
  EXPECT_EQ(other.Wait(id).status, 403);
  EXPECT_EQ(other.Ask("POST", "/c", {}, "x").body, "1") << "the connection goes on";
}

TEST_F(OpenBody, MayBeAnsweredByItsReaderWhichGoesThen) {
  std::unique_ptr<Hasty> hasty;  // the shard's
  ServerOptions options;
  options.check_head = [](HttpRequest&) {
    HeadVerdict verdict;
    verdict.whole_body_bytes = kWhole;
    return verdict;
  };
  TestServer server(
      [&hasty](std::unique_ptr<Exchange> exchange) {
        hasty = std::make_unique<Hasty>(std::move(exchange), &hasty);
      },
      std::move(options));
  const std::string body = LongBody(200000);
  for (const std::string& sent : {Head(body.size()) + body, kChunkedHead + Chunked(body, 50000)}) {
    TestClient client(server.port());
    client.Send(sent);
    EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 403"));
    server.OnShard([&] { EXPECT_EQ(hasty, nullptr); });
  }
  Http2TestClient other(server.port());
  for (const bool ends : {true, false}) {
    EXPECT_EQ(other.Wait(other.Send("POST", "/b", {}, body, ends)).status, 403);
    server.OnShard([&] { EXPECT_EQ(hasty, nullptr); });
  }
}

TEST_F(OpenBody, WhoseClientVanishesIsNotHeardOfAgain) {
  Serve();
  {
    TestClient client(server_->port());
    client.Send(Head(1 << 20) + LongBody(200000));
    WaitForUpload();
    client.Reset();
  }
  TestServer::WaitFor([&] { return closed_ == 1; });
  Http2TestClient other(server_->port());
  const int id = other.Send("POST", "/b", {}, LongBody(200000), /*end=*/false);
  other.ReadUntil([&] { return came_ >= 2; });
  other.Reset(id);
  TestServer::WaitFor([&] { return closed_ == 2; });
  EXPECT_FALSE(upload("/a").ended || upload("/b").ended);
}

TEST_F(OpenBody, OfOneStreamHoldsUpNoOther) {
  Serve(/*consumes=*/false);
  Http2TestClient client(server_->port());
  const std::string body = LongBody(2 << 20);
  const int id = client.Send("POST", "/b", {}, body);
  client.ReadUntil([&] { return came_ >= 1; });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.Ask("POST", "/c", {}, "short").body, "5");
  server_->OnShard([&] { upload("/b").ConsumeFromNowOn(); });
  const Http2Answer& answer = client.Wait(id);
  EXPECT_EQ(answer.body, "2097152");
  server_->OnShard([&] {
    EXPECT_EQ(upload("/b").body, body);
    EXPECT_LE(upload("/b").most_held, kMaxHeldOfBody);
  });
}

TEST_F(OpenBody, OfManyStreamsHoldsUpNoOther) {
  // Four that were held back took the connection's window, and no other stream's body came any more.
  Serve(/*consumes=*/false);
  constexpr int kStreams = 6;
  Http2TestClient client(server_->port());
  const std::string body = LongBody(1 << 20);
  std::map<std::string, int> ids;
  for (int i = 0; i < kStreams; ++i) {
    const std::string path = "/" + std::to_string(i);
    ids[path] = client.Send("POST", path, {}, body);
  }
  ASSERT_TRUE(client.ReadUntil([&] { return came_ >= kStreams; }));
  const std::string whole = LongBody(kWhole);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.Ask("POST", "/c", {}, whole).body, "65536");
  for (const auto& [path, id] : ids) {
    server_->OnShard([&] { upload(path).ConsumeFromNowOn(); });
    EXPECT_EQ(client.Wait(id).body, "1048576");
    server_->OnShard([&] {
      EXPECT_EQ(upload(path).body, body);
      EXPECT_LE(upload(path).most_held, kMaxHeldOfBody);
    });
  }
}

TEST_F(OpenBody, OfHttp2SaysHowMuchIsToCome) {
  Serve();
  Http2TestClient client(server_->port());
  const std::string body = LongBody(1 << 20);
  EXPECT_EQ(client.Ask("POST", "/b", {{"content-length", "1048576"}}, body).body, "1048576");
  EXPECT_EQ(client.Ask("POST", "/c", {}, body).body, "1048576");
  server_->OnShard([&] {
    EXPECT_EQ(upload("/b").rest_bytes, static_cast<int64_t>(body.size() - upload("/b").first));
    EXPECT_EQ(upload("/c").rest_bytes, -1);
    EXPECT_EQ(upload("/c").body, body);
  });
}

}  // namespace
}  // namespace portico::net
