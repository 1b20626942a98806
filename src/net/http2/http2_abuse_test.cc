// HTTP/2 as a client sees it that breaks the rules, floods or stalls: its connection is closed with
// the right error, and others do not notice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "base/sanitized_for_test.h"
#include "net/http2/http2_session.h"
#include "net/http2/http2_test_client.h"
#include "net/loop/test_server.h"

namespace portico::net {
namespace {

std::string Number(uint32_t value) {
  std::string bytes;
  for (int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

std::string Opening() { return std::string(kPreface) + Frame(4, 0, 0, ""); }
std::string Get(uint32_t stream, bool end = true) {
  return Frame(1, end ? 5 : 4, stream, GetBlock());
}

// The error of the GOAWAY with which the server ends a connection that has sent `bytes`; nothing if
// it ends it without one.
std::optional<uint32_t> GoawayAfter(TestServer& server, std::string_view bytes) {
  TestClient client(server.port());
  std::thread sending([&] { client.Send(bytes); });
  std::string answer = client.ReadToEnd();
  sending.join();
  std::optional<uint32_t> error;
  for (size_t at = 0; at + 9 <= answer.size();) {
    auto byte = [&](size_t i) {
      return static_cast<uint32_t>(static_cast<uint8_t>(answer[at + i]));
    };
    size_t size = byte(0) << 16 | byte(1) << 8 | byte(2);
    if (byte(3) == 7) error = byte(13) << 24 | byte(14) << 16 | byte(15) << 8 | byte(16);
    at += 9 + size;
  }
  return error;
}

std::string Repeat(std::string_view bytes, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all.append(bytes);
  return all;
}

struct HeldExchanges {
  std::vector<std::unique_ptr<Exchange>> exchanges;
  std::atomic<int> came{0};
  std::atomic<int> closed{0};

  Handler handler() {
    return [this](std::unique_ptr<Exchange> exchange) {
      exchange->set_on_closed([this] { ++closed; });
      exchanges.push_back(std::move(exchange));
      ++came;
    };
  }
};

ServerOptions ShortTimeouts() {
  ServerOptions options;
  options.idle_timeout = options.head_timeout = options.body_timeout = options.send_timeout =
      std::chrono::milliseconds(80);
  return options;
}

TEST(Http2Abuse, EndsAConnectionThatBreaksTheProtocolWithItsError) {
  TestServer server;
  const std::pair<std::string, uint32_t> cases[] = {
      {Frame(0, 0, 1, "data on an idle stream"), NGHTTP2_PROTOCOL_ERROR},
      {Frame(8, 0, 0, Number(0)), NGHTTP2_PROTOCOL_ERROR},
      {Frame(8, 0, 0, Number(0x7fffffff)), NGHTTP2_FLOW_CONTROL_ERROR},
      {Frame(6, 0, 0, "short"), NGHTTP2_FRAME_SIZE_ERROR},
      {Frame(6, 0, 1, "12345678"), NGHTTP2_PROTOCOL_ERROR},
      {Frame(4, 0, 0, "12345"), NGHTTP2_FRAME_SIZE_ERROR},
      {Frame(1, 5, 2, GetBlock()), NGHTTP2_PROTOCOL_ERROR},
      {Frame(1, 5, 1, "\xff\xff\xff\xff\xff\xff\xff\xff"), NGHTTP2_COMPRESSION_ERROR},
      {Frame(1, 1, 1, GetBlock()) + Frame(6, 0, 0, "12345678"), NGHTTP2_PROTOCOL_ERROR},
      {Frame(9, 4, 1, GetBlock()), NGHTTP2_PROTOCOL_ERROR},
      {Frame(5, 4, 1, Number(2) + GetBlock()), NGHTTP2_PROTOCOL_ERROR},
      {Frame(2, 0, 0, "12345"), NGHTTP2_PROTOCOL_ERROR},
      {Get(1, false) + Frame(3, 0, 1, Number(8)) + Get(1), NGHTTP2_STREAM_CLOSED},
      {Get(5) + Get(3), NGHTTP2_STREAM_CLOSED},
      {Frame(0, 0, 0, std::string(16385, 'x')), NGHTTP2_FRAME_SIZE_ERROR},
  };
  for (const auto& [bytes, error] : cases) {
    EXPECT_EQ(GoawayAfter(server, Opening() + bytes), error) << testing::PrintToString(bytes);
  }
  EXPECT_EQ(GoawayAfter(server, std::string(kPreface) + Frame(6, 0, 0, "12345678")),
            NGHTTP2_PROTOCOL_ERROR);
  Http2TestClient client(server.port());
  EXPECT_EQ(client.Ask("GET", "/").status, 200);
}

TEST(Http2Abuse, ClosesAPrefaceThatGoesWrongAtItsEnd) {
  TestServer server;
  EXPECT_EQ(GoawayAfter(server, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"), std::nullopt);
}

TEST(Http2Abuse, ResetsMalformedRequestsAlone) {
  TestServer server;
  Http2TestClient client(server.port());
  for (Headers bad : {Headers{{"connection", "close"}}, Headers{{"te", "gzip"}},
                      Headers{{"content-length", "5"}}, Headers{{"content-length", "x"}}}) {
    EXPECT_EQ(client.Ask("POST", "/", bad, "abc").error, NGHTTP2_PROTOCOL_ERROR) << bad[0].first;
  }
  EXPECT_EQ(client.Ask("GET", "/").status, 200);
}

TEST(Http2Abuse, ToleratesWhatWasOnItsWayToAStreamThatTheServerHasReset) {
  ServerOptions options;
  options.max_body_bytes = 10;
  TestServer server(EchoHandler, options);
  TestClient client(server.port());
  client.Send(Opening() + Frame(4, 1, 0, "") + Get(1, false) +
              Frame(0, 0, 1, "more than 10 bytes"));
  client.ReadUntil(Frame(3, 0, 1, Number(0)));
  client.Send(Frame(0, 0, 1, "still coming") + Get(3));
  EXPECT_THAT(client.ReadUntil("GET /a? []"), testing::EndsWith("GET /a? []"));
}

// nghttp2 drops such DATA without a word; RFC 9113, 5.1, and h2spec want an error.
TEST(Http2Abuse, EndsAConnectionThatSendsDataOnAStreamThatIsOver) {
  TestServer server;
  const std::string data = Frame(0, 0, 1, "x");
  EXPECT_EQ(GoawayAfter(server, Opening() + Get(1, false) + Frame(3, 0, 1, Number(8)) + data),
            NGHTTP2_STREAM_CLOSED);
  TestClient client(server.port());
  client.Send(Opening() + Frame(4, 1, 0, "") + Get(1));
  client.ReadUntil("GET /a? []");
  client.Send(data.substr(0, 4));
  client.Send(data.substr(4));
  EXPECT_THAT(client.ReadToEnd(), testing::HasSubstr(Number(NGHTTP2_STREAM_CLOSED)));
}

TEST(Http2Abuse, EndsFloodsOfFramesThatDoNothing) {
  TestServer server;
  const std::string floods[] = {
      Repeat(Frame(6, 0, 0, "12345678"), 20000),          // PING
      Repeat(Frame(4, 0, 0, ""), 20000),                  // SETTINGS
      Get(1, false) + Repeat(Frame(0, 0, 1, ""), 20000),  // empty DATA
      // These had no limit.
      Repeat(Frame(6, 1, 0, "12345678"), 20000),                      // PING with ACK
      Repeat(Frame(2, 0, 1, std::string("\0\0\0\0\x10", 5)), 20000),  // PRIORITY
      Repeat(Frame(8, 0, 0, std::string("\0\0\0\1", 4)), 20000),      // WINDOW_UPDATE
      Repeat(Frame(0x55, 0, 0, ""), 20000),                           // of no known type
  };
  for (const std::string& flood : floods) {
    EXPECT_EQ(GoawayAfter(server, Opening() + flood), NGHTTP2_ENHANCE_YOUR_CALM)
        << static_cast<int>(flood[3]);
  }
}

TEST(Http2Abuse, TellsAClientThatItPingsTooOften) {
  TestServer server;
  TestClient client(server.port());
  std::thread sending([&] { client.Send(Opening() + Repeat(Frame(6, 0, 0, "12345678"), 20000)); });
  const std::string answer = client.ReadToEnd();
  sending.join();
  EXPECT_THAT(answer, testing::HasSubstr("too_many_pings"));
}

TEST(Http2Abuse, LetsAClientPingThatReceives) {
  TestServer server;
  Http2TestClient client(server.port());
  for (int i = 0; i < 3000; ++i) {
    client.Ping();
    client.Ask("GET", "/");
  }
  EXPECT_EQ(client.pongs(), 3000);
}

std::string RapidReset() {
  std::string flood;
  for (uint32_t id = 1; id < 20000; id += 2) flood += Get(id) + Frame(3, 0, id, Number(8));
  return flood;
}

// One field of 3,900 bytes goes into HPACK's table; then it is named again with one byte each.
std::string HpackBomb() {
  std::string block =
      std::string("\x40\x01x\x7f\xbd\x1d", 6) + std::string(127 + 0x3d + (0x1d << 7), 'v');
  return Frame(1, 5, 1, GetBlock() + block + std::string(10000, '\xbe'));
}

std::string ContinuationFlood() {
  return Frame(1, 1, 1, GetBlock()) + Repeat(Frame(9, 0, 1, ""), 100000);
}

TEST(Http2Abuse, EndsARapidResetOfRequests) {
  HeldExchanges held;
  TestServer server(held.handler());
  EXPECT_NE(GoawayAfter(server, Opening() + RapidReset()), std::nullopt);
  TestServer::WaitFor([&] { return server.open() == 0; });
  EXPECT_EQ(held.came, held.closed);
  EXPECT_LT(held.came, 2000);
  server.OnShard([&] { held.exchanges.clear(); });
}

TEST(Http2Abuse, EndsAFloodOfContinuations) {
  TestServer server;
  EXPECT_NE(GoawayAfter(server, Opening() + ContinuationFlood()), std::nullopt);
  std::string begin = Frame(1, 1, 1, GetBlock());
  std::string field = std::string("\x40\x01x\x7f\x80\x3f", 6) + std::string(8191 - 64, 'v');
  EXPECT_NE(GoawayAfter(server, Opening() + begin + Repeat(Frame(9, 0, 1, field), 1000)),
            std::nullopt);
}

TEST(Http2Abuse, EndsAHeadThatUnpacksToFarMoreThanItsBytes) {
  TestServer server;
  EXPECT_EQ(GoawayAfter(server, Opening() + HpackBomb()), NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST(Http2Abuse, DoesNotDisturbOtherConnections) {
  HeldExchanges held;
  TestServer server(held.handler());
  Http2TestClient bystander(server.port());
  const int id = bystander.Send("GET", "/");
  bystander.ReadSettings();
  TestServer::WaitFor([&] { return held.came == 1; });
  for (const std::string& attack :
       {Frame(6, 0, 0, "short"), HpackBomb(), ContinuationFlood(), RapidReset()}) {
    EXPECT_NE(GoawayAfter(server, Opening() + attack), std::nullopt);
  }
  TestServer::WaitFor([&] { return server.open() == 1; });
  server.OnShard([&] { held.exchanges.front()->Respond({}); });
  EXPECT_EQ(bystander.Wait(id).status, 200);
  server.OnShard([&] { held.exchanges.clear(); });
}

TEST(Http2Abuse, RefusesStreamsBeyondTheAllowedNumber) {
  HeldExchanges held;
  ServerOptions options;
  options.http2.max_concurrent_streams = 10;
  TestServer server(held.handler(), options);
  TestClient client(server.port());
  std::string all = Opening() + Frame(4, 1, 0, "");
  for (uint32_t id = 1; id < 41; id += 2) all += Get(id);
  client.Send(all + Frame(6, 0, 0, "12345678"));
  client.ReadUntil("12345678");
  EXPECT_EQ(held.came, 10);
  server.OnShard([&] { held.exchanges.clear(); });
}

TEST(Http2Abuse, CutsClientsThatStallOff) {
  HeldExchanges held;
  TestServer server(held.handler(), ShortTimeouts());
  // No frame behind the preface; nothing but SETTINGS; half a head. A client that comes later than
  // the limit finds its connection closed.
  EXPECT_EQ(GoawayAfter(server, kPreface), std::nullopt);
  TestServer::WaitFor([&] { return GoawayAfter(server, Opening()) == NGHTTP2_NO_ERROR; });
  const std::string half = Opening() + Frame(1, 1, 1, GetBlock());
  TestServer::WaitFor([&] { return GoawayAfter(server, half) == NGHTTP2_ENHANCE_YOUR_CALM; });
  TestServer::WaitFor([&] { return server.open() == 0; });
  EXPECT_EQ(held.came, 0);
}

TEST(Http2Abuse, DoesNotTimeAMalformedHeadThatItHasRefused) {
  // The head was never reported as read, so its time limit ended the connection's other streams.
  HeldExchanges held;
  ServerOptions options;
  options.head_timeout = std::chrono::milliseconds(40);
  TestServer server(held.handler(), options);
  std::optional<Http2TestClient> fast;
  int open = 0;
  // Its own opening, of which the limit holds too, may come late.
  TestServer::WaitFor([&] {
    fast.emplace(server.port());
    open = fast->Send("GET", "/open");
    fast->Ping();
    return fast->ReadUntil([&] { return fast->pongs() == 1; });
  });
  EXPECT_EQ(held.came, 1);
  Http2TestClient& client = *fast;
  EXPECT_EQ(client.Ask("GET", "/", {{"connection", "close"}}).error, NGHTTP2_PROTOCOL_ERROR);
  std::this_thread::sleep_for(std::chrono::milliseconds(120));
  server.OnShard([&] { EchoHandler(std::move(held.exchanges[0])); });
  EXPECT_EQ(client.Wait(open).status, 200);
}

TEST(Http2Abuse, EndsAnIdleConnectionAtItsAge) {
  ServerOptions options;
  options.http2.max_age = std::chrono::milliseconds(40);
  TestServer server(EchoHandler, options);
  Http2TestClient client(server.port());
  EXPECT_TRUE(client.ReadToEnd());
  EXPECT_GE(client.goaways(), 1);
}

TEST(Http2Abuse, AnswersASlowBodyWith408AndCutsAnUnreadAnswerOff) {
  std::string body(100000, 'b');
  ServerOptions options;
  options.body_timeout = options.send_timeout = std::chrono::milliseconds(80);
  TestServer server(
      [&](std::unique_ptr<Exchange> exchange) {
        HttpResponse response;
        response.body = body;
        exchange->Respond(std::move(response));
      },
      options);
  Http2TestClient slow(server.port());
  EXPECT_EQ(slow.Wait(slow.Send("POST", "/", {}, "abc", false)).status, 408);
  Http2TestClient unread(server.port(), /*window=*/1000);
  EXPECT_EQ(unread.Ask("GET", "/").error, NGHTTP2_ENHANCE_YOUR_CALM);
}

TEST(Http2Abuse, PingsASilentClientAndCutsItOff) {
  ServerOptions options;
  options.http2.keepalive_time = std::chrono::milliseconds(40);
  {
    HeldExchanges held;
    TestServer server(held.handler(), options);
    Http2TestClient answers(server.port());
    answers.Send("GET", "/");
    EXPECT_TRUE(answers.ReadUntil([&] { return answers.pings() >= 4; }));
    EXPECT_EQ(held.closed, 0);
    server.OnShard([&] { held.exchanges.clear(); });
  }
  options.http2.keepalive_timeout = std::chrono::milliseconds(40);
  HeldExchanges held;
  TestServer server(held.handler(), options);
  TestClient silent(server.port());
  silent.Send(Opening() + Get(1));
  silent.ReadToEnd();
  TestServer::WaitFor([&] { return held.closed == 1; });
  server.OnShard([&] { held.exchanges.clear(); });
}

TEST(Http2Abuse, EndsAConnectionAtItsAgeButNotItsStreams) {
  HeldExchanges held;
  ServerOptions options;
  options.http2.max_age = std::chrono::milliseconds(60);
  TestServer server(held.handler(), options);
  std::optional<Http2TestClient> young;
  int id = 0;
  // A request that comes after the connection's age is not taken.
  TestServer::WaitFor([&] {
    young.emplace(server.port());
    id = young->Send("GET", "/a");
    return young->ReadUntil([&] { return young->goaways() == 2; }) && held.came == 1;
  });
  Http2TestClient& client = *young;
  EXPECT_EQ(client.goaway_error(), 0u);
  server.OnShard([&] { EchoHandler(std::move(held.exchanges[0])); });
  EXPECT_EQ(client.Wait(id).body, "GET /a? []");
  EXPECT_EQ(held.closed, 0);
}

TEST(Http2Abuse, EndsTheStreamsOfAnOldConnectionAfterTheGrace) {
  HeldExchanges held;
  ServerOptions options;
  options.http2.max_age = options.http2.max_age_grace = std::chrono::milliseconds(60);
  TestServer server(held.handler(), options);
  TestServer::WaitFor([&] {
    Http2TestClient client(server.port());
    client.Send("GET", "/a");
    client.ReadToEnd();
    return held.came > 0;  // in time
  });
  TestServer::WaitFor([&] { return held.closed == 1; });
  server.OnShard([&] { held.exchanges.clear(); });
}

TEST(Http2Abuse, SurvivesRandomFrames) {
  TestServer server;
  std::mt19937 random(20261121);
  for (int i = 0; i < RandomRounds(1000); ++i) {
    std::string bytes = Opening();
    for (int n = static_cast<int>(random() % 10); n >= 0; --n) {
      std::string payload;
      for (size_t size = random() % 40; payload.size() < size;) {
        payload.push_back(static_cast<char>(random()));
      }
      if (random() % 3 == 0) payload = GetBlock();
      bytes += Frame(static_cast<int>(random() % 12), static_cast<int>(random() % 64),
                     random() % 3 == 0 ? 0 : 1 + 2 * static_cast<uint32_t>(n), payload);
    }
    TestClient client(server.port());
    client.Send(bytes);
    client.HalfClose();
    if (i % 2 == 0) client.ReadToEnd();
  }
  Http2TestClient client(server.port());
  EXPECT_EQ(client.Ask("GET", "/").status, 200);
  TestServer::WaitFor([&] { return server.open() == 1; });
}

}  // namespace
}  // namespace portico::net
