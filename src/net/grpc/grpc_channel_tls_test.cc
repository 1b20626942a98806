// The gRPC client through TLS, against our own server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/grpc/grpc_channel.h"
#include "net/grpc/grpc_test_client.h"
#include "net/grpc/grpc_test_server.h"
#include "net/tls/tls_test_client.h"

namespace portico::net {
namespace {

using testing::HasSubstr;

const GrpcCallOptions kCall = {.path = "/test.Echo/Unary"};

GrpcChannelOptions ThroughTls(int port, const TlsClientOptions& tls) {
  auto context = TlsClientContext::Load(tls);
  EXPECT_TRUE(context.ok()) << context.status();
  GrpcChannelOptions options = ToPort(port);
  options.tls = *std::move(context);
  options.server_name = "localhost";
  return options;
}

Status Outcome(const GrpcChannelOptions& options) {
  ClientLoop client(options);
  return client.WaitForEnd(client.Start(kCall, {std::string(100000, 'x')}));
}

TEST(GrpcChannelTls, TrustsTheAuthorityThatItIsGiven) {
  TestCertificate certificate;
  GrpcTestServer server(certificate.Options());
  const Status status = Outcome(ThroughTls(server.port(), {.ca_file = certificate.certificate}));
  EXPECT_TRUE(status.ok()) << status;
}

TEST(GrpcChannelTls, TrustsAllAuthoritiesThatItIsGiven) {
  TestCertificate certificate;
  TestCertificate other("another");
  GrpcTestServer server(certificate.Options());
  for (const auto& files : {std::vector{certificate.certificate, other.certificate},
                            std::vector{other.certificate, certificate.certificate}}) {
    const Status status = Outcome(ThroughTls(server.port(), {.ca_files = files}));
    EXPECT_TRUE(status.ok()) << status;
  }
}

TEST(GrpcChannelTls, TrustsNobodyElse) {
  TestCertificate certificate;
  TestCertificate other;
  GrpcTestServer server(certificate.Options());
  const Status status = Outcome(ThroughTls(server.port(), {.ca_file = other.certificate}));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr("certificate"));
}

TEST(GrpcChannelTls, ChecksTheServersName) {
  TestCertificate certificate;
  GrpcTestServer server(certificate.Options());
  GrpcChannelOptions options = ThroughTls(server.port(), {.ca_file = certificate.certificate});
  options.server_name = "example.org";
  const Status status = Outcome(options);
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr("ostname mismatch"));
}

TEST(GrpcChannelTls, ShowsItsCertificateWhereTheServerAsks) {
  TestCertificate certificate;
  TestCertificate client;
  ServerOptions asking = certificate.Options();
  asking.tls.client_ca = client.certificate;
  GrpcTestServer server(asking);
  TlsClientOptions tls = {.ca_file = certificate.certificate};
  EXPECT_EQ(Outcome(ThroughTls(server.port(), tls)).code(), StatusCode::kUnavailable);
  tls.certificate = client.certificate;
  tls.key = client.key_file;
  const Status status = Outcome(ThroughTls(server.port(), tls));
  EXPECT_TRUE(status.ok()) << status;
}

TEST(GrpcChannelTls, InsistsOnHttp2) {
  TestCertificate certificate;
  ServerOptions old = certificate.Options();
  old.http2.enabled = false;
  GrpcTestServer server(old);
  const Status status = Outcome(ThroughTls(server.port(), {.ca_file = certificate.certificate}));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
}

TEST(GrpcChannelTls, NamesTheFileThatItCannotUse) {
  TestCertificate certificate;
  auto none = TlsClientContext::Load({.ca_file = "/none.pem"});
  EXPECT_THAT(MessageOf(none.status()), HasSubstr("/none.pem"));
  none = TlsClientContext::Load({.ca_files = {certificate.certificate, "/none.pem"}});
  EXPECT_THAT(MessageOf(none.status()), HasSubstr("/none.pem"));
  auto mismatch = TlsClientContext::Load(
      {.certificate = certificate.certificate, .key = TestCertificate().key_file});
  EXPECT_FALSE(mismatch.ok());
}

}  // namespace
}  // namespace portico::net
