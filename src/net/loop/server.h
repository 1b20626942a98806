// The listeners and their connections: TCP or TLS, HTTP/1.1, HTTP/2 and gRPC on one port.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log_limit.h"
#include "base/status.h"
#include "net/grpc/grpc_options.h"
#include "net/http/exchange.h"
#include "net/http2/http2_options.h"
#include "net/loop/shard.h"
#include "net/tls/tls_options.h"

namespace portico::net {

// What a server holds now, and what it has refused at its bounds. Any thread.
struct ServerLoad {
  explicit ServerLoad(size_t max_inflight_body_bytes)
      : bodies(std::make_shared<BodyBudget>(max_inflight_body_bytes)) {}

  const std::shared_ptr<BodyBudget> bodies;
  std::atomic<int> connections{0};
  std::atomic<uint64_t> connections_refused{0};  // over max_connections
  std::atomic<uint64_t> readers_cut{0};          // over max_unsent_bytes, or stalled
  LogLimit failed_handshakes{1, std::chrono::seconds(10)};
};

struct ServerOptions {
  std::string host =
      "127.0.0.1";  // a name or an address; the first of its addresses that can be bound
  int port = 0;     // 0: any free one, see Server::port()
  std::vector<int> more_ports;  // of the same host, with the same protocols

  int max_connections = 16384;       // one more gets 503 and is closed
  size_t max_head_bytes = 64 << 10;  // more: 431
  size_t max_body_bytes = 32 << 20;  // more, declared or sent: 413
  // Of all bodies that are being read or answered, and of incomplete gRPC messages; more: 503. Bodies
  // of up to BodyBudget::kSmallBody do not count. Unless `load` is given.
  size_t max_inflight_body_bytes = 512 << 20;
  // A stream whose client has not taken this many bytes is cut off. Whole answers may be larger,
  // but must move.
  size_t max_unsent_bytes = 16 << 20;

  Duration idle_timeout = std::chrono::seconds(75);  // between requests
  Duration head_timeout =
      std::chrono::seconds(20);  // from a head's first byte to its last; TLS handshake
  // In each body_timeout that a body takes, min_body_bytes of it must arrive; else 408.
  Duration body_timeout = std::chrono::seconds(20);
  size_t min_body_bytes = 4096;
  Duration send_timeout =
      std::chrono::seconds(60);  // a client that takes nothing for so long is cut off

  Http2Options http2;
  GrpcOptions grpc;

  std::string server_header = "portico";  // empty: none
  TlsOptions tls;                         // 1.2 and 1.3, ALPN h2 and http/1.1

  // While it drains the server still takes connections, so that probes can be answered; their requests
  // are marked as late, and the drain does not wait for them. False: the port closes first.
  bool answers_while_draining = false;
  // Null: the server makes its own.
  std::shared_ptr<ServerLoad> load;
  // Null: every request is read.
  HeadCheck check_head;
  ErrorWriter write_error;

  // Called on the shard when an answer is complete (written, not yet sent) or its client has left
  // (status 499). `bytes` counts the body. Null: nothing is measured.
  std::function<void(const HttpRequest& request, int status, size_t bytes, Duration took)>
      on_complete;
  // `on_complete` sees the answer's x-request-id as the request's.
  bool notes_ids = false;
};

struct ServerStats {
  uint64_t accepted = 0;
  uint64_t refused = 0;   // over max_connections
  std::vector<int> open;  // connections on each shard
};

// Thread safe, but not to be called from a shard.
class Server {
 public:
  // Listens, and serves on `shards`: running, and outliving the server. `handler` is called on any
  // of them. Fails with a sentence if the address cannot be bound or the certificate or key not be
  // used. Makes the process ignore SIGPIPE.
  static StatusOr<std::unique_ptr<Server>> Start(ServerOptions options, std::vector<Shard*> shards,
                                                 Handler handler);
  ~Server();  // Stop()
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  int port() const;
  ServerStats stats() const;

  // Connections that the kernel has already completed are still taken, then the port is closed.
  void StopAccepting();
  // StopAccepting(), unless answers_while_draining; closes connections that are between requests, answers the rest with
  // `Connection: close` and waits until all are gone. False if `deadline` comes first; the rest
  // goes on until Stop().
  bool Drain(TimePoint deadline);
  // Closes everything at once: exchanges in flight get on_closed. Nothing of the server runs on a
  // shard afterwards. The shards must still run; once it has returned they may end before the server is destroyed.
  void Stop();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace portico::net
