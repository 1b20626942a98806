// One outgoing connection on its shard: finds the host's addresses, connects, then moves bytes,
// plain or through TLS. What one turn of the loop writes leaves in one send. Time limits are the
// user's, but for a server whose host has vanished without a word: the connection is lost when what
// has been sent is not acknowledged or taken for 30 s, or, nothing being on its way, when probes of
// the kernel are not answered for as long (15 s after the last byte the first, then every 5 s).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "net/loop/shard.h"
#include "net/socket/output_queue.h"

namespace portico::net {

class TlsClientContext;

struct ClientTarget {
  std::string host;  // a name or an address, IPv6 without brackets
  int port = 0;
  const TlsClientContext* tls = nullptr;  // null: plain; outlives the socket
  std::string tls_name;                   // whom the server must prove to be
};

// What is told about a socket, on the shard, never from within a call of it. Each call may destroy
// the socket.
class ClientSocketEvents {
 public:
  virtual ~ClientSocketEvents() = default;
  // TCP is connected; with TLS the handshake happens within the first bytes.
  virtual void OnConnected() = 0;
  virtual void OnBytes(std::string_view bytes) = 0;
  // Writing: the moment to fill the output. Called at the end of a turn after WriteSoon(), and when
  // the kernel has taken everything that was waiting.
  virtual void OnWritable() = 0;
  // No connection came about, or it is lost or ended by the peer; why. The last call.
  virtual void OnLost(const Status& status) = 0;
};

class ClientSocket {
 public:
  // Begins to connect. `events` must live as long as this.
  ClientSocket(Shard& shard, const ClientTarget& target, ClientSocketEvents& events);
  // Sends what the kernel takes at once and closes.
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  // While reading is paused, what comes stays in the kernel, and neither bytes nor the connection's
  // end are told. Resuming tells them from the end of the turn on.
  void PauseReading();
  void ResumeReading();

  // Asks for OnWritable().
  void WriteSoon();
  // Output to append to, within OnWritable().
  std::string& Output();
  size_t unsent() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace portico::net
