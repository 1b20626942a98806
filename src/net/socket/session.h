// The protocol on a connection. The connection moves bytes and keeps time; the session gives them
// meaning. HTTP/1.1 is one; HTTP/2 stands beside it on the same connection, plain or TLS.
#pragma once

#include <cstdint>
#include <string_view>

namespace portico::net {

// What a connection waits for; each has its own time limit.
enum class Wait : uint8_t {
  kAnswer,  // for us: no limit here
  kIdle,    // the next request
  kHead,    // the rest of a head, or of a TLS handshake
  kBody,    // the rest of a body, with progress in each period
  kDrop,    // the rest of a body that nobody wants
  kTick,    // the session times several things itself and looks at them in each period
  // The connection's own:
  kSend,    // the client to take some output
  kPeer,    // for us, with reading paused: looks in each period whether the client is still there
  kLinger,  // the client to notice that we have closed
};
inline constexpr int kWaits = 9;

// All on the shard. A session calls its connection from within these, and is destroyed only between
// them.
class Session {
 public:
  virtual ~Session() = default;

  // Bytes have come; what is not used up is the session's to keep.
  virtual void OnBytes(std::string_view bytes) = 0;
  // The client has ended its output or the connection is lost. Once; no bytes follow. What has been
  // written is still sent if that is possible, then the connection closes.
  virtual void OnEnd() = 0;
  // The time for kIdle, kHead, kBody or kDrop is over, or a period of kTick.
  virtual void OnTimeout(Wait wait) = 0;
  // All output has been taken by the kernel, for which the session had asked
  // (Connection::TellWhenSent).
  virtual void OnSent() = 0;
  // At the end of a turn in which the session had asked for it (Connection::RunAtEndOfTurn).
  virtual void OnEndOfTurn() = 0;
  // The server drains: finish what is in flight and close.
  virtual void OnDrain() = 0;
};

}  // namespace portico::net
