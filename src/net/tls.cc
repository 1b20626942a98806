#include "net/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <utility>

namespace portico::net {
namespace {

constexpr unsigned char kAlpn[] = "\x02h2\x08http/1.1";
constexpr size_t kH2 = 3;  // its bytes at the front of kAlpn

// The cause; OpenSSL puts what followed from it behind.
std::string FirstError() {
  unsigned long code = ERR_peek_error();
  std::string text;
  if (ERR_SYSTEM_ERROR(code)) {
    text = std::strerror(ERR_GET_REASON(code));
  } else if (const char* reason = ERR_reason_error_string(code)) {
    text = reason;
  } else {
    text = "unknown error";
  }
  ERR_clear_error();
  return text;
}

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

class TlsTransport final : public Transport {
 public:
  explicit TlsTransport(SSL* ssl) : ssl_(ssl) {}
  ~TlsTransport() override { SSL_free(ssl_); }

  IoResult Read(char* to, size_t size) override {
    size_t got = 0;
    ERR_clear_error();
    int result = SSL_read_ex(ssl_, to, size, &got);
    if (result == 1) return {.kind = IoResult::kDone, .bytes = got, .more = true};
    return Failure(result, SSL_ERROR_WANT_WRITE);
  }

  IoResult Write(const iovec* parts, int count) override {
    size_t total = 0;
    for (int i = 0; i < count; ++i) {
      size_t sent = 0;
      ERR_clear_error();
      int result = SSL_write_ex(ssl_, parts[i].iov_base, parts[i].iov_len, &sent);
      if (result != 1) {
        if (total > 0) break;  // a lasting failure shows again at the next call
        return Failure(result, SSL_ERROR_WANT_READ);
      }
      total += sent;
      if (sent < parts[i].iov_len) break;
    }
    return {.kind = IoResult::kDone, .bytes = total};
  }

  void EndOutput() override {
    ERR_clear_error();
    if (!failed_ && SSL_is_init_finished(ssl_)) SSL_shutdown(ssl_);
    shutdown(SSL_get_fd(ssl_), SHUT_WR);
  }

 private:
  IoResult Failure(int result, int opposite) {
    int error = SSL_get_error(ssl_, result);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      return {.kind = IoResult::kBlocked, .opposite = error == opposite};
    }
    if (error == SSL_ERROR_ZERO_RETURN) return {.kind = IoResult::kEnd};
    failed_ = true;  // OpenSSL forbids SSL_shutdown after these
    ERR_clear_error();
    return {.kind = IoResult::kFailed};
  }

  SSL* ssl_;
  bool failed_ = false;
};

}  // namespace

StatusOr<std::unique_ptr<TlsContext>> TlsContext::Load(const std::string& certificate_path,
                                                       const std::string& key_path, bool http2) {
  ERR_clear_error();
  SSL_CTX* raw = SSL_CTX_new(TLS_server_method());
  if (raw == nullptr) return Error(StatusCode::kInternal, "TLS: " + FirstError());
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

  if (SSL_CTX_use_certificate_chain_file(raw, certificate_path.c_str()) != 1) {
    return Error(StatusCode::kInvalidArgument,
                 "cannot use the TLS certificate " + certificate_path + ": " + FirstError());
  }
  if (SSL_CTX_use_PrivateKey_file(raw, key_path.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Error(StatusCode::kInvalidArgument,
                 "cannot use the TLS key " + key_path + ": " + FirstError());
  }
  if (SSL_CTX_check_private_key(raw) != 1) {
    return Error(
        StatusCode::kInvalidArgument,
        "the TLS key " + key_path + " does not belong to the certificate " + certificate_path);
  }
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
