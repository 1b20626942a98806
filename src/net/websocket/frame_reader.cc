#include "net/websocket/frame_reader.h"

#include <openssl/evp.h>

#include <algorithm>

#include "absl/strings/escaping.h"
#include "text/utf8.h"

namespace portico::net {
namespace {

constexpr uint8_t kContinuation = 0;
constexpr uint8_t kText = 1;
constexpr uint8_t kBinary = 2;
constexpr uint8_t kClose = 8;
constexpr uint8_t kPing = 9;
constexpr uint8_t kPong = 10;
constexpr size_t kMaxControl = 125;
constexpr size_t kMaxReason = 123;
constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

bool IsControl(uint8_t opcode) { return (opcode & 8) != 0; }

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// Those that a peer may send (RFC 6455, 7.4.2).
bool IsCloseCode(uint16_t code) {
  return (code >= 1000 && code <= 1014 && code != 1004 && code != 1005 && code != 1006) ||
         (code >= 3000 && code <= 4999);
}

uint8_t OpcodeOf(WsMessage::Kind kind) {
  switch (kind) {
    case WsMessage::kText:
      return kText;
    case WsMessage::kBinary:
      return kBinary;
    case WsMessage::kPing:
      return kPing;
    case WsMessage::kPong:
      return kPong;
    default:
      return kClose;
  }
}

}  // namespace

uint16_t WsFrameReader::ReadHead() {
  const auto byte = [this](size_t i) { return static_cast<uint8_t>(head_[i]); };
  if (head_.size() == 2) {
    final_ = (byte(0) & 0x80) != 0;
    opcode_ = byte(0) & 0x0F;
    if ((byte(0) & 0x70) != 0) return kWsProtocolError;  // no extension was agreed on
    if ((byte(1) & 0x80) == 0) return kWsProtocolError;  // clients mask
    const uint8_t length = byte(1) & 0x7F;
    if (IsControl(opcode_)) {
      if (opcode_ > kPong || !final_ || length > kMaxControl) return kWsProtocolError;
    } else if (opcode_ > kBinary || (opcode_ == kContinuation) != (message_opcode_ != 0)) {
      return kWsProtocolError;
    }
    head_bytes_ = 6 + (length == 126 ? 2U : length == 127 ? 8U : 0U);
    return 0;
  }
  const uint8_t length = byte(1) & 0x7F;
  left_ = length;
  if (length >= 126) {
    left_ = 0;
    for (size_t i = 2; i + 4 < head_.size(); ++i) left_ = (left_ << 8) | byte(i);
    if (left_ < 126 || (length == 127 && left_ <= 0xFFFF)) return kWsProtocolError;
  }
  for (size_t i = 0; i < 4; ++i) mask_[i] = byte(head_.size() - 4 + i);
  mask_at_ = 0;
  if (!IsControl(opcode_)) {
    if (left_ > max_message_bytes_ || message_.size() + left_ > max_message_bytes_) {
      return kWsTooLarge;
    }
    if (opcode_ != kContinuation) message_opcode_ = opcode_;
  }
  in_payload_ = true;
  return 0;
}

uint16_t WsFrameReader::FrameEnd(absl::FunctionRef<bool(const WsMessage&)> on_message,
                                 bool* go_on) {
  WsMessage message;
  if (!IsControl(opcode_)) {
    if (!final_) return 0;
    message.kind = message_opcode_ == kText ? WsMessage::kText : WsMessage::kBinary;
    message.data = message_;
    if (message.kind == WsMessage::kText && !IsUtf8(message_)) return kWsInvalidText;
    *go_on = on_message(message);
    if (!*go_on) return 0;
    message_.clear();
    message_opcode_ = 0;
    return 0;
  }
  message.kind = opcode_ == kPing   ? WsMessage::kPing
                 : opcode_ == kPong ? WsMessage::kPong
                                    : WsMessage::kClose;
  message.data = control_;
  if (opcode_ == kClose) {
    if (control_.size() == 1) return kWsProtocolError;
    if (control_.size() >= 2) {
      message.code = static_cast<uint16_t>((static_cast<uint8_t>(control_[0]) << 8) |
                                           static_cast<uint8_t>(control_[1]));
      message.data.remove_prefix(2);
      if (!IsCloseCode(message.code)) return kWsProtocolError;
      if (!IsUtf8(message.data)) return kWsInvalidText;
    }
    over_ = true;
  }
  *go_on = on_message(message);
  if (!*go_on) return 0;
  control_.clear();
  return 0;
}

uint16_t WsFrameReader::Feed(std::string_view bytes,
                             absl::FunctionRef<bool(const WsMessage&)> on_message) {
  const auto fail = [this](uint16_t code) {
    over_ = true;
    return code;
  };
  while (!over_) {
    if (!in_payload_) {
      const size_t count = std::min(head_bytes_ - head_.size(), bytes.size());
      head_.append(bytes.substr(0, count));
      bytes.remove_prefix(count);
      if (head_.size() < head_bytes_) return 0;
      if (const uint16_t code = ReadHead(); code != 0) return fail(code);
      continue;
    }
    const auto count = static_cast<size_t>(std::min<uint64_t>(left_, bytes.size()));
    std::string& payload = IsControl(opcode_) ? control_ : message_;
    for (const char c : bytes.substr(0, count)) {
      payload.push_back(static_cast<char>(static_cast<uint8_t>(c) ^ mask_[mask_at_++ & 3]));
    }
    bytes.remove_prefix(count);
    left_ -= count;
    if (left_ > 0) return 0;
    in_payload_ = false;
    head_.clear();
    head_bytes_ = 2;
    bool go_on = true;
    // The callback may destroy this where it says to stop.
    if (const uint16_t code = FrameEnd(on_message, &go_on); !go_on) {
      return 0;
    } else if (code != 0) {
      return fail(code);
    }
  }
  return 0;
}

void AppendWsFrame(WsMessage::Kind kind, std::string_view data, std::string* out) {
  out->push_back(static_cast<char>(0x80 | OpcodeOf(kind)));
  if (data.size() < 126) {
    out->push_back(static_cast<char>(data.size()));
  } else {
    const int width = data.size() <= 0xFFFF ? 2 : 8;
    out->push_back(static_cast<char>(width == 2 ? 126 : 127));
    for (int i = width - 1; i >= 0; --i) {
      out->push_back(static_cast<char>(static_cast<uint64_t>(data.size()) >> (8 * i)));
    }
  }
  out->append(data);
}

void AppendWsClose(uint16_t code, std::string_view reason, std::string* out) {
  std::string data;
  if (code != kWsNoStatus) {
    data.push_back(static_cast<char>(code >> 8));
    data.push_back(static_cast<char>(code & 0xFF));
    data.append(reason.substr(0, kMaxReason));
  }
  AppendWsFrame(WsMessage::kClose, data, out);
}

std::string WsAccept(std::string_view key) {
  std::string text(key);
  text += kGuid;
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha1(), nullptr);
  std::string out;
  absl::Base64Escape(absl::string_view(reinterpret_cast<const char*>(digest), size), &out);
  return out;
}

}  // namespace portico::net
