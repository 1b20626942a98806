// What a server has on one shard: its connections and what they share.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "net/http/http_text.h"
#include "net/loop/connection_table.h"
#include "net/loop/server.h"
#include "net/loop/shard.h"
#include "net/socket/connection.h"
#include "net/socket/output_queue.h"
#include "net/tls/tls.h"

namespace portico::net {

// Connections of a server, on their way to a shard or there. Any thread.
class OpenCount {
 public:
  void Add();
  void Remove();
  int count() const { return count_.load(std::memory_order_relaxed); }
  // False if `deadline` comes first.
  bool WaitForZero(TimePoint deadline);

 private:
  std::atomic<int> count_{0};
  Mutex mutex_;
  CondVar none_;
};

class ServerShard {
 public:
  static constexpr size_t kReadBuffer = 64 << 10;

  ServerShard(Shard& shard, const ServerOptions& options, const Handler& handler, ServerLoad& load,
              std::shared_ptr<const TlsContext> tls);
  ~ServerShard();

  // Any thread: counts a connection that is on its way here, in `total` too.
  void Expect(OpenCount& total);
  int open() const { return open_.load(std::memory_order_relaxed); }

  struct Accepted {
    int fd;
    bool ipv6;
    std::string peer;
    bool refuse;  // answers 503 and closes
    bool late;    // came while the server drains, which does not wait for it
  };
  // The rest on the shard. Takes an accepted socket over, which `total` counts.
  void Adopt(Accepted accepted, OpenCount& total);
  void Drain();
  // For connections that come from now on.
  void UseTls(std::shared_ptr<const TlsContext> tls) { tls_ = std::move(tls); }
  void AbortAll();
  // Frees the connection at the end of the turn.
  void Retire(Connection* connection);
  bool draining() const { return draining_; }

  Shard& shard;
  const ServerOptions& options;
  const Handler& handler;
  ServerLoad& load;
  ConnectionTable table;
  // Of connections, and of HTTP/2 streams, whose are much smaller.
  BufferPool buffers;
  BufferPool stream_buffers;
  HttpDate date;
  std::unique_ptr<char[]> read_buffer;

 private:
  void ScheduleSweep();
  void Forget();
  void Leave(OpenCount& total);  // the last thing done for a connection

  std::shared_ptr<const TlsContext> tls_;  // null: no TLS
  std::atomic<int> open_{0};
  std::vector<Connection*> retired_;
  std::unique_ptr<Shard::Timer> sweep_;
  Duration sweep_period_;
  bool draining_ = false;
};

}  // namespace portico::net
