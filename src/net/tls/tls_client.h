// TLS for the connections that we open: HTTP/2 with ALPN h2, or HTTP/1.1.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "net/socket/transport.h"

struct ssl_ctx_st;

namespace portico::net {

enum class TlsProtocol {
  kHttp2,  // the server must choose h2
  kHttp1,  // http/1.1 is offered; a server without ALPN is taken to speak it
};

struct TlsClientOptions {
  std::string ca_file = {};                // PEM
  std::vector<std::string> ca_files = {};  // more of them; without any: the system's roots
  std::string certificate = {};  // PEM with its chain, for servers that ask for it; may be empty
  std::string key = {};
  TlsProtocol protocol = TlsProtocol::kHttp2;
};

class TlsClientContext {
 public:
  // Fails with a sentence that names the file. Options without a file are read when the first connection needs them: OpenSSL
  // itself takes 4 MB of a gateway whose workers are all plain.
  static StatusOr<std::unique_ptr<TlsClientContext>> Load(const TlsClientOptions& options);
  ~TlsClientContext();
  TlsClientContext(const TlsClientContext&) = delete;
  TlsClientContext& operator=(const TlsClientContext&) = delete;

  // The client's side of a connection to a server that must prove to be `name` (a DNS name or an
  // IP address) and speak the protocol. Null if OpenSSL cannot (out of memory). Any thread.
  std::unique_ptr<Transport> Connect(int fd, const std::string& name) const;

 private:
  explicit TlsClientContext(TlsClientOptions options) : options_(std::move(options)) {}
  Status Open() const;

  const TlsClientOptions options_;
  mutable std::once_flag opened_;
  mutable ssl_ctx_st* context_ = nullptr;  // null: not opened, or that failed
};

}  // namespace portico::net
