#include "net/tls/tls_reload.h"

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "net/tls/tls_test_client.h"

namespace portico::net {
namespace {

using testing::EndsWith;

constexpr char kGet[] = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

std::string ReadFile(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

ServerOptions Watching(const TestCertificate& certificate) {
  ServerOptions options = certificate.Options();
  options.tls.reload_period = std::chrono::milliseconds(5);
  return options;
}

TEST(TlsReload, NewConnectionsGetTheChangedCertificateAndOldOnesGoOn) {
  TestCertificate certificate;
  TestServer server(EchoHandler, Watching(certificate), /*shards=*/2);
  TlsClient old(server.port());
  const std::string before = ReadFile(certificate.certificate);
  EXPECT_EQ(old.Certificate(), before);
  certificate.Renew();
  const std::string after = ReadFile(certificate.certificate);
  ASSERT_NE(before, after);
  int seen = 0;
  // Both shards have it.
  TestServer::WaitFor(
      [&] { return TlsClient(server.port()).Certificate() == after && ++seen >= 4; });
  old.Send(kGet);
  EXPECT_THAT(old.ReadAnswer(), EndsWith("GET /a? []"));
}

TEST(TlsReload, ABrokenFileKeepsTheFormerCertificate) {
  TestCertificate certificate;
  Shard shard(0);
  shard.Start();
  ServerOptions options = Watching(certificate);
  TlsReloader reloader(shard, options.tls, true);
  EXPECT_TRUE(reloader.Load().ok());
  std::ofstream(certificate.key_file) << "not a key";
  EXPECT_FALSE(reloader.Load().ok());
  certificate.Renew();
  EXPECT_TRUE(reloader.Load().ok());

  TestServer server(EchoHandler, options);
  const std::string before = ReadFile(certificate.certificate);
  std::ofstream(certificate.key_file) << "not a key";
  // Many looks later.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  TlsClient client(server.port());
  EXPECT_EQ(client.Certificate(), before);
  certificate.Renew();
  const std::string after = ReadFile(certificate.certificate);
  TestServer::WaitFor([&] { return TlsClient(server.port()).Certificate() == after; });
  shard.Stop();
}

TEST(TlsReload, ClientsMustShowACertificateOfTheNamedAuthority) {
  TestCertificate certificate;
  TestCertificate authority;
  TestCertificate stranger;
  ServerOptions options = certificate.Options();
  options.tls.client_ca = authority.certificate;
  TestServer server(EchoHandler, options);
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    auto ask = [&](const TestCertificate* shown) {
      TlsClient client(server.port(), 0, version, "\x08http/1.1", shown);
      if (!client.connected()) return std::string();
      client.Send(kGet);
      return client.ReadAnswer();
    };
    EXPECT_THAT(ask(&authority), EndsWith("GET /a? []"));
    EXPECT_EQ(ask(nullptr), "");
    EXPECT_EQ(ask(&stranger), "");
  }
}

TEST(TlsReload, AnEncryptedKeyNeedsItsPassword) {
  TestCertificate certificate;
  FILE* file = std::fopen(certificate.key_file.c_str(), "r");
  EVP_PKEY* key = PEM_read_PrivateKey(file, nullptr, nullptr, nullptr);
  std::fclose(file);
  std::string password = "open sesame";
  file = std::fopen(certificate.key_file.c_str(), "w");
  PEM_write_PrivateKey(file, key, EVP_aes_128_cbc(),
                       reinterpret_cast<const unsigned char*>(password.data()),
                       static_cast<int>(password.size()), nullptr, nullptr);
  std::fclose(file);
  EVP_PKEY_free(key);
  TlsOptions options = certificate.Options().tls;
  EXPECT_FALSE(TlsContext::Load(options, true).ok());
  options.key_password = "wrong";
  EXPECT_FALSE(TlsContext::Load(options, true).ok());
  options.key_password = password;
  EXPECT_TRUE(TlsContext::Load(options, true).ok());
}

}  // namespace
}  // namespace portico::net
