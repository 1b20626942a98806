// TLS for the connections that we open: gRPC over HTTP/2 with ALPN h2.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "net/transport.h"

struct ssl_ctx_st;

namespace portico::net {

struct TlsClientOptions {
  std::string ca_file = {};      // PEM; empty: the system's roots
  std::string certificate = {};  // PEM with its chain, for servers that ask for it; may be empty
  std::string key = {};
};

class TlsClientContext {
 public:
  // Fails with a sentence that names the file.
  static StatusOr<std::unique_ptr<TlsClientContext>> Load(const TlsClientOptions& options);
  ~TlsClientContext();
  TlsClientContext(const TlsClientContext&) = delete;
  TlsClientContext& operator=(const TlsClientContext&) = delete;

  // The client's side of a connection to a server that must prove to be `name` (a DNS name or an
  // IP address) and speak HTTP/2. Null if out of memory. Any thread.
  std::unique_ptr<Transport> Connect(int fd, const std::string& name) const;

 private:
  explicit TlsClientContext(ssl_ctx_st* context) : context_(context) {}
  ssl_ctx_st* context_;
};

}  // namespace portico::net
