#include "net/tls/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string>
#include <utility>

#include "net/tls/tls_identity.h"
#include "net/tls/tls_transport.h"

namespace portico::net {
namespace {

constexpr unsigned char kAlpn[] = "\x02h2\x08http/1.1";
constexpr size_t kH2 = 3;  // its bytes at the front of kAlpn

int ChooseProtocol(SSL*, const unsigned char** out, unsigned char* out_size,
                   const unsigned char* offered, unsigned int offered_size, void* skip) {
  unsigned char* chosen = nullptr;
  const size_t start = skip == nullptr ? 0 : kH2;
  int found = SSL_select_next_proto(&chosen, out_size, kAlpn + start,
                                    static_cast<unsigned int>(sizeof kAlpn - 1 - start), offered,
                                    offered_size);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Status AskForClients(SSL_CTX* context, const std::string& authorities) {
  if (authorities.empty()) return OkStatus();
  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(authorities.c_str());
  if (names == nullptr ||
      SSL_CTX_load_verify_locations(context, authorities.c_str(), nullptr) != 1) {
    Status wrong = CannotUseTlsFile("authority for clients", authorities);
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return wrong;
  }
  SSL_CTX_set_client_CA_list(context, names);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<TlsContext>> TlsContext::Load(const TlsOptions& options, bool http2) {
  ERR_clear_error();
  SSL_CTX* raw = SSL_CTX_new(TLS_server_method());
  if (raw == nullptr) return Error(StatusCode::kInternal, "TLS: " + FirstTlsError());
  std::unique_ptr<TlsContext> context(new TlsContext(raw));

  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                               SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                            SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  static char without_http2;
  SSL_CTX_set_alpn_select_cb(raw, ChooseProtocol, http2 ? nullptr : &without_http2);
  static constexpr unsigned char kSessionContext[] = "portico";
  SSL_CTX_set_session_id_context(raw, kSessionContext, sizeof kSessionContext - 1);

  PORTICO_RETURN_IF_ERROR(
      UseTlsIdentity(raw, options.certificate, options.key, options.key_password));
  PORTICO_RETURN_IF_ERROR(AskForClients(raw, options.client_ca));
  return context;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

std::unique_ptr<Transport> TlsContext::Accept(int fd) const {
  SSL* ssl = SSL_new(context_);
  if (ssl == nullptr || SSL_set_fd(ssl, fd) != 1) {
    SSL_free(ssl);
    return nullptr;
  }
  SSL_set_accept_state(ssl);
  return std::make_unique<TlsTransport>(ssl);
}

}  // namespace portico::net
