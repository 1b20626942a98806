#include "net/tls.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "net/http2_test_client.h"
#include "net/test_server.h"

namespace portico::net {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kGet[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

// A fresh key and a self-signed certificate for localhost, as PEM files that go with the object.
class TestCertificate {
 public:
  TestCertificate() {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* cert = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME* name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(cert, name);
    X509_sign(cert, key, EVP_sha256());
    FILE* file = std::fopen(certificate.c_str(), "w");
    PEM_write_X509(file, cert);
    std::fclose(file);
    file = std::fopen(key_file.c_str(), "w");
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    X509_free(cert);
    EVP_PKEY_free(key);
  }
  ~TestCertificate() {
    std::remove(certificate.c_str());
    std::remove(key_file.c_str());
  }

  ServerOptions Options() const {
    ServerOptions options;
    options.tls_certificate = certificate;
    options.tls_key = key_file;
    return options;
  }

  std::string base = testing::TempDir() + "portico_tls_" + std::to_string(getpid());
  std::string certificate = base + ".crt";
  std::string key_file = base + ".key";
};

class TlsClient {
 public:
  explicit TlsClient(int port, int receive_buffer = 0, int version = TLS1_3_VERSION,
                     std::string_view alpn = "\x08http/1.1")
      : socket_(port, receive_buffer), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_max_proto_version(context_, version);
    SSL_CTX_set_min_proto_version(context_, TLS1_VERSION);
    SSL_CTX_set_security_level(context_, 0);
    SSL_CTX_set_options(context_, SSL_OP_IGNORE_UNEXPECTED_EOF);
    ssl_ = SSL_new(context_);
    SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(alpn.data()),
                        static_cast<unsigned int>(alpn.size()));
    SSL_set_fd(ssl_, socket_.fd());
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }

  bool connected() const { return connected_; }
  SSL* ssl() { return ssl_; }
  void Send(std::string_view bytes) {
    SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string Read(size_t size) {
    std::string out;
    char buffer[16384];
    while (out.size() < size) {
      int got =
          SSL_read(ssl_, buffer, static_cast<int>(std::min(sizeof buffer, size - out.size())));
      if (got <= 0) break;
      out.append(buffer, static_cast<size_t>(got));
    }
    return out;
  }
  std::string ReadAnswer() {
    std::string out;
    while (!out.ends_with("\r\n\r\n")) {
      std::string one = Read(1);
      if (one.empty()) return out;
      out += one;
    }
    size_t at = out.find("content-length: ");
    return at == std::string::npos ? out : out + Read(std::stoul(out.substr(at + 16)));
  }

 private:
  TestClient socket_;
  SSL_CTX* context_;
  SSL* ssl_;
  bool connected_;
};

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
  TlsClient client(server.port());
  client.Send(kGet);
  EXPECT_THAT(client.ReadAnswer(), StartsWith("HTTP/1.1 200"));
}

TEST(Tls, SaysWhichFileCannotBeUsed) {
  TestCertificate certificate;
  auto message = [](const std::string& cert, const std::string& key) {
    auto loaded = TlsContext::Load(cert, key, true);
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
