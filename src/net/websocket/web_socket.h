// A WebSocket on its shard, the server's side (RFC 6455, without extensions).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "net/http/exchange.h"
#include "net/websocket/frame_reader.h"

namespace portico::net {

class WsSession;

struct WsOptions {
  size_t max_message_bytes = 1 << 20;
  std::string protocol;  // the subprotocol that the server chooses; empty: none
};

// On the shard that it was made on. Pings are answered by itself, and it sends one every 20 s, so
// that a lost client is noticed.
class WebSocket {
 public:
  ~WebSocket();
  WebSocket(const WebSocket&) = delete;
  WebSocket& operator=(const WebSocket&) = delete;

  // Makes the exchange's connection a WebSocket: answers 101, or null and an answer that says what
  // is missing. Only from within the handler that got the exchange.
  static std::unique_ptr<WebSocket> Accept(std::unique_ptr<Exchange> exchange, WsOptions options);

  // Messages as they come. It may destroy this.
  void set_on_message(absl::AnyInvocable<void(WsMessage::Kind, std::string_view)> on_message) {
    on_message_ = std::move(on_message);
  }
  // Once, when the client has left or closed, or broken a rule. It may destroy this.
  void set_on_closed(absl::AnyInvocable<void()> on_closed) { on_closed_ = std::move(on_closed); }

  void SendText(std::string_view text);
  void SendBinary(std::string_view bytes);
  // The last message; the connection closes when it is sent.
  void Close(uint16_t code, std::string_view reason);
  // Bytes that the client has not taken.
  size_t unsent_bytes() const;
  // Runs `call` once, on the shard, when the client has read again: when no more than `bytes` are unsent, also where so
  // few are now. As Exchange::CallWhenBelow(): in a later turn, the next one replaces it, a null one drops it. Dropped
  // once the socket closes or is destroyed, which `call` itself may do.
  void CallWhenBelow(size_t bytes, absl::AnyInvocable<void()> call);
  bool open() const { return session_ != nullptr; }

 private:
  friend class WsSession;
  WebSocket() = default;

  WsSession* session_ = nullptr;  // null once closed
  absl::AnyInvocable<void(WsMessage::Kind, std::string_view)> on_message_;
  absl::AnyInvocable<void()> on_closed_;
};

// True if the request asks for a WebSocket.
bool AsksForWebSocket(const HttpRequest& request);

}  // namespace portico::net
