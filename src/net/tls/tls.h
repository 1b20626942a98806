// TLS for the listener, on OpenSSL 3: 1.2 and 1.3, ALPN h2 and http/1.1, client certificates where
// an authority for them is named. OpenSSL works on the socket
// itself, without buffers of ours between; an idle connection gives its record buffers back.
#pragma once

#include <memory>

#include "base/status.h"
#include "net/socket/transport.h"
#include "net/tls/tls_options.h"

struct ssl_ctx_st;

namespace portico::net {

class TlsContext {
 public:
  // Fails with a sentence that names the file. `http2`: h2 is offered, and preferred.
  static StatusOr<std::unique_ptr<TlsContext>> Load(const TlsOptions& options, bool http2);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // The server's side of a connection; the handshake happens within its first reads. Any thread.
  // Null if out of memory.
  std::unique_ptr<Transport> Accept(int fd) const;

 private:
  explicit TlsContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

}  // namespace portico::net
