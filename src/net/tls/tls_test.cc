#include "net/tls/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <string>

#include "net/http2/http2_test_client.h"
#include "net/loop/test_server.h"
#include "net/tls/tls_test_client.h"

namespace portico::net {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kGet[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(Tls, ChoosesHttp2WhereTheClientOffersIt) {
  TestCertificate certificate;
  for (bool enabled : {true, false}) {
    ServerOptions options = certificate.Options();
    options.http2.enabled = enabled;
    TestServer server(EchoHandler, options);
    TlsClient client(server.port(), 0, TLS1_3_VERSION, "\x08http/1.1\x02h2");
    ASSERT_TRUE(client.connected());
    const unsigned char* chosen;
    unsigned int size;
    SSL_get0_alpn_selected(client.ssl(), &chosen, &size);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(chosen), size),
              enabled ? "h2" : "http/1.1");
    if (!enabled) continue;
    client.Send(std::string(kPreface) + Frame(4, 0, 0, "") + Frame(1, 5, 1, GetBlock()));
    std::string answer = client.Read(60);
    EXPECT_EQ(answer.substr(3, 2), std::string("\x04\x00", 2));  // SETTINGS
    while (!answer.ends_with("GET /a? []") && !answer.empty()) answer += client.Read(1);
  }
}

TEST(Tls, AnswersOverBothVersionsAndChoosesHttp11) {
  TestCertificate certificate;
  TestServer server(EchoHandler, certificate.Options());
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient client(server.port(), 0, version);
    ASSERT_TRUE(client.connected());
    EXPECT_EQ(SSL_version(client.ssl()), version);
    const unsigned char* chosen;
    unsigned int size;
    SSL_get0_alpn_selected(client.ssl(), &chosen, &size);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(chosen), size), "http/1.1");
    for (int i = 0; i < 3; ++i) {
      client.Send(kGet);
      EXPECT_THAT(client.ReadAnswer(), EndsWith("GET /a? []"));
    }
  }
  EXPECT_FALSE(TlsClient(server.port(), 0, TLS1_1_VERSION).connected());
}

TEST(Tls, CarriesLargeBodiesBothWaysToASlowReader) {
  TestCertificate certificate;
  TestServer server(EchoHandler, certificate.Options());
  TlsClient client(server.port(), 65536);
  std::string body(20 << 20, 'b');
  body.back() = '!';
  client.Send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
              "\r\n\r\n");
  client.Send(body);
  std::string answer = client.ReadAnswer();
  EXPECT_TRUE(answer.ends_with("[" + body + "]")) << answer.size();
}

TEST(Tls, NoticesAClientThatLeavesDuringAnAnswer) {
  TestCertificate certificate;
  std::atomic<int> came{0};
  std::atomic<int> closed{0};
  std::vector<std::unique_ptr<Exchange>> held;
  TestServer server(
      [&](std::unique_ptr<Exchange> exchange) {
        exchange->set_on_closed([&] { ++closed; });
        held.push_back(std::move(exchange));
        ++came;
      },
      certificate.Options());
  for (bool orderly : {true, false}) {
    TlsClient client(server.port());
    client.Send(kGet);
    TestServer::WaitFor([&] { return came == (orderly ? 1 : 2); });
    if (orderly) {
      SSL_shutdown(client.ssl());
      TestServer::WaitFor([&] { return closed == 1; });
    }
  }
  TestServer::WaitFor([&] { return closed == 2; });
  server.OnShard([&] { held.clear(); });
}

TEST(Tls, SurvivesClientsThatDoNotSpeakIt) {
  TestCertificate certificate;
  ServerOptions options = certificate.Options();
  options.head_timeout = std::chrono::milliseconds(60);
  TestServer server(EchoHandler, options);
  TestClient plain(server.port());
  plain.Send(kGet);
  plain.ReadToEnd();
  TestClient silent(server.port());
  EXPECT_EQ(silent.ReadToEnd(), "");
  TestClient halfway(server.port());
  halfway.Send("\x16\x03\x01\x02\x00\x01");
  halfway.ReadToEnd();
  TestServer::WaitFor([&] { return server.open() == 0; });
  // The limit holds for a handshake on a busy machine, too.
  TestServer::WaitFor([&] {
    TlsClient client(server.port());
    if (!client.connected()) return false;
    client.Send(kGet);
    return client.ReadAnswer().starts_with("HTTP/1.1 200");
  });
}

// Failed handshakes were in no log.
TEST(Tls, HandshakesThatFailLeaveALineWithTheReasonAndManyOfThemNoMore) {
  TestCertificate certificate;
  TestServer server(EchoHandler, certificate.Options());
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    TestClient plain(server.port());
    plain.Send(kGet);
    plain.ReadToEnd();
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("warning TLS: the handshake with 127.0.0.1:"));
  EXPECT_THAT(log, EndsWith(" failed: the client speaks plain HTTP\n"));
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
}

TEST(Tls, ClientsThatLeaveBeforeTheHandshakeIsDoneLeaveNoLine) {
  TestCertificate certificate;
  TestServer server(EchoHandler, certificate.Options());
  testing::internal::CaptureStderr();
  {
    TestClient prober(server.port());
    TestClient halfway(server.port());
    halfway.Send("\x16\x03\x01\x02\x00\x01");
    TestServer::WaitFor([&] { return server.open() == 2; });
  }
  TestServer::WaitFor([&] { return server.open() == 0; });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Tls, SaysWhichFileCannotBeUsed) {
  TestCertificate certificate;
  auto message = [](const std::string& cert, const std::string& key) {
    TlsOptions options;
    options.certificate = cert;
    options.key = key;
    auto loaded = TlsContext::Load(options, true);
    return loaded.ok() ? std::string("ok") : std::string(MessageOf(loaded.status()));
  };
  EXPECT_EQ(message(certificate.certificate, certificate.key_file), "ok");
  EXPECT_EQ(message("/nowhere/a.crt", certificate.key_file),
            "cannot use the TLS certificate /nowhere/a.crt: No such file or directory");
  EXPECT_THAT(message(certificate.certificate, "/nowhere/a.key"),
              StartsWith("cannot use the TLS key /nowhere/a.key: "));
  EXPECT_THAT(message(certificate.key_file, certificate.key_file),
              StartsWith("cannot use the TLS certificate "));
  EXPECT_THAT(message(certificate.certificate, certificate.certificate),
              HasSubstr(certificate.certificate));
}

}  // namespace
}  // namespace portico::net
