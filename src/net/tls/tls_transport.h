// A connection through TLS on OpenSSL, for either side. OpenSSL works on the socket itself, without
// buffers of ours between.
#pragma once

#include <openssl/ssl.h>

#include <string>

#include "net/socket/transport.h"

namespace portico::net {

class TlsTransport : public Transport {
 public:
  // Takes `ssl`, whose descriptor and side are set; the handshake happens within the first reads and
  // writes.
  explicit TlsTransport(SSL* ssl) : ssl_(ssl) {}
  ~TlsTransport() override { SSL_free(ssl_); }
  TlsTransport(const TlsTransport&) = delete;
  TlsTransport& operator=(const TlsTransport&) = delete;

  IoResult Read(char* to, size_t size) override;
  IoResult Write(const iovec* parts, int count) override;
  void EndOutput() override;
  std::string Failure() const override { return failure_; }
  std::string HandshakeFailure() const override;
  std::string PeerSubject() const override;

 protected:
  // Says that the connection must not be used.
  IoResult Fail(std::string why);
  SSL* ssl() const { return ssl_; }

 private:
  IoResult Stopped(int result, int opposite);

  SSL* ssl_;
  bool failed_ = false;
  std::string failure_;
};

// The cause of the last failure; OpenSSL puts what followed from it behind.
std::string FirstTlsError();

}  // namespace portico::net
