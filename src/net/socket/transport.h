// Bytes in and out of a connected, non-blocking socket, plain or through TLS. Waiting for readiness
// is the connection's business; a transport never blocks and never waits.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace portico::net {

struct IoResult {
  enum Kind {
    kDone,     // `bytes` moved, at least one
    kBlocked,  // nothing moved; try again when the socket is ready
    kEnd,      // the peer will send no more (reads only)
    kFailed,   // the connection is lost
  };
  Kind kind = kDone;
  size_t bytes = 0;
  // kDone: another call may move more at once. kBlocked: TLS waits for the opposite direction.
  bool more = false;
  bool opposite = false;
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual IoResult Read(char* to, size_t size) = 0;
  virtual IoResult Write(const iovec* parts, int count) = 0;
  // Tells the peer that no more bytes will come; best effort, before the socket is closed.
  virtual void EndOutput() = 0;
  // After kFailed: why, where more is known than that the connection is lost.
  virtual std::string Failure() const { return {}; }
  // The same of a TLS handshake that the two sides could not agree on, and of nothing else.
  virtual std::string HandshakeFailure() const { return {}; }
  // The subject of the certificate that the peer has shown, as RFC 2253 writes names; empty where
  // there is none. The same at every call after the first bytes have been read.
  virtual std::string PeerSubject() const { return {}; }
};

// Reads what has come, not without end: a connection with much to read gives way to others. `take`
// gets each buffer; false: no more, the transport may be gone. Returns kDone, or why there is no
// more.
IoResult ReadTurn(Transport& transport, std::span<char> buffer,
                  absl::FunctionRef<bool(std::string_view)> take);

// `fd` stays the caller's and must outlive the transport.
std::unique_ptr<Transport> MakePlainTransport(int fd);

}  // namespace portico::net
