// What a client sends on a WebSocket (RFC 6455): frames → messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace portico::net {

// Close codes (RFC 6455, 7.4.1).
inline constexpr uint16_t kWsNormal = 1000;
inline constexpr uint16_t kWsGoingAway = 1001;
inline constexpr uint16_t kWsProtocolError = 1002;
inline constexpr uint16_t kWsNoStatus = 1005;  // never on the wire
inline constexpr uint16_t kWsInvalidText = 1007;
inline constexpr uint16_t kWsPolicy = 1008;
inline constexpr uint16_t kWsTooLarge = 1009;
inline constexpr uint16_t kWsInternal = 1011;

struct WsMessage {
  enum Kind { kText, kBinary, kPing, kPong, kClose };
  Kind kind = kText;
  std::string_view data;        // within the reader, until the callback returns
  uint16_t code = kWsNoStatus;  // of kClose
};

// Takes bytes as they come and gives whole messages. Control frames come between the fragments of a
// message. Keeps at most one message and one control frame.
class WsFrameReader {
 public:
  explicit WsFrameReader(size_t max_message_bytes) : max_message_bytes_(max_message_bytes) {}

  // 0, or the close code for what breaks a rule: unmasked, reserved or oversized frames, fragments
  // out of order, text that is not UTF-8. After that, and after a close message, nothing is read.
  // `on_message` gives false to stop early; what follows is dropped.
  uint16_t Feed(std::string_view bytes, absl::FunctionRef<bool(const WsMessage&)> on_message);

 private:
  // The head of the frame in head_ is whole: checks it.
  uint16_t ReadHead();
  uint16_t FrameEnd(absl::FunctionRef<bool(const WsMessage&)> on_message, bool* go_on);

  const size_t max_message_bytes_;
  std::string head_;       // the head of a frame so far
  size_t head_bytes_ = 2;  // of a whole one, as far as known
  bool in_payload_ = false;
  bool final_ = false;
  uint8_t opcode_ = 0;
  uint64_t left_ = 0;  // of the payload
  uint32_t mask_at_ = 0;
  uint8_t mask_[4] = {};
  std::string message_;  // of the fragments so far
  std::string control_;
  uint8_t message_opcode_ = 0;  // 0: none has begun
  bool over_ = false;
};

// Appends a server's frame, which is not masked.
void AppendWsFrame(WsMessage::Kind kind, std::string_view data, std::string* out);
void AppendWsClose(uint16_t code, std::string_view reason, std::string* out);

// The answer to Sec-WebSocket-Key.
std::string WsAccept(std::string_view key);

}  // namespace portico::net
