// The session of a connection that has become a WebSocket.
#pragma once

#include <string_view>
#include <utility>

#include "base/clock.h"
#include "net/socket/connection.h"
#include "net/socket/session.h"
#include "net/websocket/frame_reader.h"
#include "net/websocket/web_socket.h"

namespace portico::net {

class WsSession final : public Session {
 public:
  WsSession(Connection& connection, WebSocket* socket, size_t max_message_bytes);
  ~WsSession() override;

  void OnBytes(std::string_view bytes) override;
  void OnEnd() override;
  void OnTimeout(Wait wait) override;
  void OnSent() override {}
  void OnEndOfTurn() override {}
  void OnDrain() override;

  // From the socket, which may go away then.
  void Send(WsMessage::Kind kind, std::string_view data);
  void Close(uint16_t code, std::string_view reason);
  size_t unsent() const { return connection_.unsent(); }
  void CallWhenBelow(size_t bytes, BelowCall::Call call) {
    connection_.CallWhenBelow(bytes, std::move(call));
  }
  // The socket is gone.
  void Detach() { socket_ = nullptr; }

 private:
  bool OnMessage(const WsMessage& message);
  void Fail(uint16_t code);
  void TellClosed();

  Connection& connection_;
  WebSocket* socket_;
  WsFrameReader reader_;
  TimePoint heard_;
  TimePoint pinged_;
  bool closing_ = false;
};

}  // namespace portico::net
