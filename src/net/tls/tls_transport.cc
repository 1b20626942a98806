#include "net/tls/tls_transport.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace portico::net {
namespace {

constexpr char kPeerLost[] = "connection lost";

}  // namespace

// The cause; OpenSSL puts what followed from it behind.
std::string FirstTlsError() {
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

IoResult TlsTransport::Read(char* to, size_t size) {
  size_t got = 0;
  ERR_clear_error();
  int result = SSL_read_ex(ssl_, to, size, &got);
  if (result == 1) return {.kind = IoResult::kDone, .bytes = got, .more = true};
  return Stopped(result, SSL_ERROR_WANT_WRITE);
}

IoResult TlsTransport::Write(const iovec* parts, int count) {
  size_t total = 0;
  for (int i = 0; i < count; ++i) {
    size_t sent = 0;
    ERR_clear_error();
    int result = SSL_write_ex(ssl_, parts[i].iov_base, parts[i].iov_len, &sent);
    if (result != 1) {
      if (total > 0) break;  // a lasting failure shows again at the next call
      return Stopped(result, SSL_ERROR_WANT_READ);
    }
    total += sent;
    if (sent < parts[i].iov_len) break;
  }
  return {.kind = IoResult::kDone, .bytes = total};
}

void TlsTransport::EndOutput() {
  ERR_clear_error();
  if (!failed_ && SSL_is_init_finished(ssl_)) SSL_shutdown(ssl_);
  shutdown(SSL_get_fd(ssl_), SHUT_WR);
}

std::string TlsTransport::HandshakeFailure() const {
  // SSL_is_init_finished() is false after every failure.
  if (failure_ == kPeerLost || SSL_get_state(ssl_) == TLS_ST_OK) return {};
  return failure_ == "http request" ? "the client speaks plain HTTP" : failure_;
}

std::string TlsTransport::PeerSubject() const {
  X509* certificate = SSL_get0_peer_certificate(ssl_);
  if (certificate == nullptr) return {};
  BIO* memory = BIO_new(BIO_s_mem());
  if (memory == nullptr) return {};
  X509_NAME_print_ex(memory, X509_get_subject_name(certificate), 0,
                     XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB);
  char* text = nullptr;
  const long size = BIO_get_mem_data(memory, &text);
  std::string subject(text, static_cast<size_t>(std::max(size, 0L)));
  BIO_free(memory);
  return subject;
}

IoResult TlsTransport::Stopped(int result, int opposite) {
  int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    return {.kind = IoResult::kBlocked, .opposite = error == opposite};
  }
  if (error == SSL_ERROR_ZERO_RETURN) return {.kind = IoResult::kEnd};
  const long verdict = SSL_get_verify_result(ssl_);
  if (verdict != X509_V_OK) {
    return Fail(std::string("the peer's certificate: ") + X509_verify_cert_error_string(verdict));
  }
  return Fail(error == SSL_ERROR_SSL ? FirstTlsError() : kPeerLost);
}

IoResult TlsTransport::Fail(std::string why) {
  failed_ = true;  // OpenSSL forbids SSL_shutdown after these
  failure_ = std::move(why);
  ERR_clear_error();
  return {.kind = IoResult::kFailed};
}

}  // namespace portico::net
