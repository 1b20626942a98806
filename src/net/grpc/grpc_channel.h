// A gRPC client's way to one server: a pool of HTTP/2 connections that are opened as calls need
// them, and opened again, with backoff, when they are lost. Everything is on one shard.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "net/grpc/grpc_backoff.h"
#include "net/grpc/grpc_client_call.h"
#include "net/loop/shard.h"
#include "net/socket/client_socket.h"
#include "net/tls/tls_client.h"

namespace portico::net {

struct GrpcChannelOptions {
  std::string host;  // a name or an address, IPv6 without brackets
  int port = 0;
  std::shared_ptr<const TlsClientContext> tls;  // null: plain
  std::string server_name;                      // with TLS; empty: the host
  std::string authority;                        // empty: from host and port
  std::string user_agent;                       // before our own
  // Another connection is opened when the server's limit of concurrent streams is reached on all.
  size_t max_connections = 8;
  // Calls that wait for a connection; more are refused with RESOURCE_EXHAUSTED.
  size_t max_pending_calls = 10000;
  size_t max_message_bytes = 64 << 20;  // of a received message
  size_t max_head_bytes = 64 << 10;     // of received metadata
  size_t max_unsent_bytes = 64 << 20;   // of what a call has written
  uint32_t stream_window = 1 << 20;     // what a server may send ahead of a paused call
  uint32_t connection_window = 16 << 20;
  Duration connect_timeout = std::chrono::seconds(20);
  GrpcBackoffOptions backoff;
  // A connection with calls on which nothing has come for this long is pinged, and given up if
  // nothing comes within keepalive_timeout. Zero: never.
  Duration keepalive_time = Duration::zero();
  Duration keepalive_timeout = std::chrono::seconds(20);
  bool keepalive_without_calls = false;
  // A connection without calls is closed after it. Zero: never.
  Duration idle_timeout = std::chrono::minutes(5);
};

class GrpcChannel {
 public:
  // Opens no connection yet.
  GrpcChannel(Shard& shard, GrpcChannelOptions options);
  // Ends calls that have not ended, with CANCELLED, and closes the connections. On the shard, or
  // after it has stopped.
  ~GrpcChannel();
  GrpcChannel(const GrpcChannel&) = delete;
  GrpcChannel& operator=(const GrpcChannel&) = delete;

  // Never null; a call that cannot be ends soon. `events` must live as long as the call.
  std::unique_ptr<GrpcClientCall> Start(GrpcCallOptions options, GrpcCallEvents& events);

  // New calls end with UNAVAILABLE; `done` is called when those that run have ended and the
  // connections are closed. Once.
  void Shutdown(Shard::Task done);

  const GrpcChannelOptions& options() const { return options_; }
  // Those that take calls, or soon will.
  size_t connections() const;
  size_t calls() const { return calls_.size(); }
  size_t pending_calls() const { return pending_.size(); }

 private:
  friend class GrpcClientCall;
  friend class GrpcConnection;

  // From calls.
  void Forget(GrpcClientCall& call);
  void RunSoon(GrpcClientCall& call);
  // Waits for a connection; `again`: before the others, its server has not looked at it.
  void Queue(GrpcClientCall& call, bool again);
  void Unqueue(GrpcClientCall& call);

  // From connections. None calls a call's events.
  void Assign();
  void OnDraining(GrpcConnection& connection);
  void Retire(GrpcConnection& connection, const Status& status);

  void Connect();
  void BackOff(const GrpcConnection& connection, const Status& status);
  void FailPending();
  void RunAllSoon();
  void CheckShutdown();
  GrpcConnection* Room() const;
  bool connecting() const;

  Shard& shard_;
  GrpcChannelOptions options_;
  ClientTarget target_;
  std::string authority_;
  std::string user_agent_;
  std::vector<std::unique_ptr<GrpcConnection>> connections_;
  std::vector<GrpcClientCall*> calls_;  // all that have not ended
  std::list<GrpcClientCall*> pending_;  // those that have no connection
  std::vector<GrpcClientCall*> soon_;   // those to be told something outside of their functions
  std::vector<GrpcClientCall*> running_;
  std::unique_ptr<Shard::Timer> soon_timer_;
  bool* gone_ = nullptr;  // of RunAllSoon()

  GrpcBackoff backoff_;
  TimePoint next_attempt_{};
  Status last_failure_;
  int early_goaways_ = 0;  // one after another
  std::unique_ptr<Shard::Timer> attempt_timer_;
  bool shut_down_ = false;
  Shard::Task on_shut_down_;
};

}  // namespace portico::net
