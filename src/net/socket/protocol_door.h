// The first session of every connection: looks at the first line and lets the right protocol in.
// HTTP/2 with prior knowledge begins with a fixed preface (RFC 9113, 3.4), through TLS as well;
// HTTP/1 with a line that ends in its version. What speaks neither is closed without an answer that
// it could misunderstand.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "net/socket/connection.h"
#include "net/socket/session.h"

namespace portico::net {

enum class Protocol { kUndecided, kHttp1, kHttp2, kUnknown };

// By the bytes that have come so far, at least one.
Protocol RecognizeProtocol(std::string_view first_bytes);

class ProtocolDoor final : public Session {
 public:
  explicit ProtocolDoor(Connection& connection) : connection_(connection) {}

  void OnBytes(std::string_view bytes) override;
  void OnEnd() override {}
  void OnTimeout(Wait) override { connection_.Abort(); }
  void OnSent() override {}
  void OnEndOfTurn() override {}
  void OnDrain() override { connection_.Abort(); }

 private:
  void Enter(std::unique_ptr<Session> session, std::string_view bytes);

  Connection& connection_;
  std::string first_bytes_;  // while undecided
};

}  // namespace portico::net
