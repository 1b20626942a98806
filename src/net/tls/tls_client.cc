#include "net/tls/tls_client.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <string_view>

#include "base/log.h"
#include "net/tls/tls_identity.h"
#include "net/tls/tls_transport.h"

namespace portico::net {
namespace {

constexpr unsigned char kH2[] = "\x02h2";
constexpr unsigned char kHttp1[] = "\x08http/1.1";

bool IsAddress(const std::string& name) {
  in6_addr ignored;
  return inet_pton(AF_INET, name.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, name.c_str(), &ignored) == 1;
}

class Http2TlsTransport final : public TlsTransport {
 public:
  using TlsTransport::TlsTransport;

  IoResult Read(char* to, size_t size) override { return Check(TlsTransport::Read(to, size)); }
  IoResult Write(const iovec* parts, int count) override {
    return Check(TlsTransport::Write(parts, count));
  }

 private:
  IoResult Check(IoResult result) {
    if (checked_ || result.kind != IoResult::kDone) return result;
    checked_ = true;
    const unsigned char* name = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(ssl(), &name, &size);
    if (std::string_view(reinterpret_cast<const char*>(name), size) == "h2") return result;
    return Fail("the peer does not offer HTTP/2 (ALPN)");
  }

  bool checked_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<TlsClientContext>> TlsClientContext::Load(
    const TlsClientOptions& options) {
  std::unique_ptr<TlsClientContext> made(new TlsClientContext(options));
  if (options.ca_file.empty() && options.ca_files.empty() && options.certificate.empty()) {
    return made;
  }
  Status opened;
  std::call_once(made->opened_, [&] { opened = made->Open(); });
  PORTICO_RETURN_IF_ERROR(opened);
  return made;
}

Status TlsClientContext::Open() const {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                            SSL_CTX_free);
  SSL_CTX* const raw = context.get();
  if (raw == nullptr) return Error(StatusCode::kInternal, "TLS: " + FirstTlsError());

  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(
      raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
  const bool http2 = options_.protocol == TlsProtocol::kHttp2;
  if (SSL_CTX_set_alpn_protos(raw, http2 ? kH2 : kHttp1,
                              http2 ? sizeof kH2 - 1 : sizeof kHttp1 - 1) != 0) {
    return Error(StatusCode::kInternal, "TLS: " + FirstTlsError());
  }
  std::vector<std::string> authorities = options_.ca_files;
  if (!options_.ca_file.empty()) authorities.push_back(options_.ca_file);
  if (authorities.empty()) SSL_CTX_set_default_verify_paths(raw);
  for (const std::string& file : authorities) {
    if (SSL_CTX_load_verify_locations(raw, file.c_str(), nullptr) != 1) {
      return CannotUseTlsFile("authority", file);
    }
  }
  if (!options_.certificate.empty()) {
    PORTICO_RETURN_IF_ERROR(UseTlsIdentity(raw, options_.certificate, options_.key, ""));
  }
  context_ = context.release();
  return OkStatus();
}

TlsClientContext::~TlsClientContext() { SSL_CTX_free(context_); }

std::unique_ptr<Transport> TlsClientContext::Connect(int fd, const std::string& name) const {
  std::call_once(opened_, [this] {
    const Status opened = Open();
    if (!opened.ok()) LogError("{}", MessageOf(opened));
  });
  SSL* ssl = context_ == nullptr ? nullptr : SSL_new(context_);
  if (ssl == nullptr || SSL_set_fd(ssl, fd) != 1) {
    SSL_free(ssl);
    return nullptr;
  }
  if (IsAddress(name)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str());
  } else {
    SSL_set_tlsext_host_name(ssl, name.c_str());
    SSL_set1_host(ssl, name.c_str());
  }
  SSL_set_connect_state(ssl);
  if (options_.protocol == TlsProtocol::kHttp2) return std::make_unique<Http2TlsTransport>(ssl);
  return std::make_unique<TlsTransport>(ssl);
}

}  // namespace portico::net
