#include "net/zmq/zmtp_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"

namespace portico::net {
namespace {

constexpr size_t kZmtpGreetingBytes = 64;
constexpr size_t kSignatureEnd = 9;
constexpr size_t kVersionAt = 10;
constexpr size_t kMechanismAt = 12;
constexpr size_t kMechanismBytes = 20;
// Signature, version 3.1, mechanism NULL, and zeros.
constexpr char kZmtpGreeting[kZmtpGreetingBytes + 1] = "\xFF\0\0\0\0\0\0\0\1\x7F\3\1NULL";
constexpr std::string_view kZmtpGreetingView(kZmtpGreeting, kZmtpGreetingBytes);
constexpr std::string_view kZmtpPong("\4PONG");
constexpr std::string_view kZmtpReady("\4\x1A\5READY\x0BSocket-Type\0\0\0\4PULL", 28);

constexpr uint8_t kZmtpMoreFlag = 1;
constexpr uint8_t kZmtpLongFlag = 2;
constexpr uint8_t kZmtpCommandFlag = 4;
constexpr size_t kZmtpShortHead = 2;
constexpr size_t kZmtpLongHead = 9;
constexpr size_t kMaxCommandBytes = 4096;
// A time, in tenths of a second: of no use where the kernel tells of a peer's end.
constexpr size_t kPingLifeBytes = 2;
constexpr size_t kMaxPingContext = 16;
constexpr size_t kMaxUnsentAnswers = 64 << 10;

constexpr size_t kFirstZmtpBuffer = 16 << 10;
constexpr size_t kKeptZmtpBuffer = 1 << 20;  // of an empty one; a larger one is given back
// Where less is left, the beginning of a frame is moved to the front, so that one read takes much.
constexpr size_t kLeastZmtpSpace = 4 << 10;

uint64_t ZmtpNumber(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

}  // namespace

ZmtpReader::ZmtpReader(size_t max_message_bytes)
    : max_message_bytes_(max_message_bytes), output_(kZmtpGreetingView) {}

std::span<char> ZmtpReader::Space() {
  const size_t have = end_ - begin_;
  if (have == 0) {
    begin_ = end_ = 0;
    if (capacity_ > kKeptZmtpBuffer) {
      buffer_.reset();
      capacity_ = 0;
    }
  }
  const size_t wanted = std::max(wanted_, have + 1);
  if (capacity_ - end_ < kLeastZmtpSpace && begin_ + wanted > capacity_) MakeSpace(have, wanted);
  return {buffer_.get() + end_, capacity_ - end_};
}

// A frame that fits is moved once at most; for one that does not, the buffer grows to twice what has come.
void ZmtpReader::MakeSpace(size_t have, size_t wanted) {
  const size_t capacity = std::max(kFirstZmtpBuffer, std::min(wanted, 2 * have));
  if (wanted > capacity_ && capacity > capacity_) {
    auto larger = std::make_unique_for_overwrite<char[]>(capacity);
    if (have > 0) std::memcpy(larger.get(), buffer_.get() + begin_, have);
    buffer_ = std::move(larger);
    capacity_ = capacity;
  } else {
    std::memmove(buffer_.get(), buffer_.get() + begin_, have);
  }
  begin_ = 0;
  end_ = have;
}

ZmtpReader::Step ZmtpReader::Fail(std::string_view why) {
  state_ = State::kFailed;
  why_ = why;
  return Step::kFailed;
}

ZmtpReader::Step ZmtpReader::Next(std::string_view* part) {
  if (HasMore()) {
    *part = parts_[next_part_++];
    return Step::kPart;
  }
  parts_.clear();
  next_part_ = 0;
  if (state_ == State::kGreeting) {
    if (const Step step = ReadGreeting(); step != Step::kPart) return step;
  }
  while (state_ != State::kFailed) {
    Frame frame;
    if (const Step step = ReadHead(&frame); step != Step::kPart) return step;
    wanted_ = frame.head + frame.size;
    if (unread().size() < wanted_) return Step::kMore;
    const std::string_view body = unread().substr(frame.head, frame.size);
    begin_ += wanted_;
    wanted_ = 0;
    const Step step = frame.command ? OnCommand(body) : OnPart(frame, body, part);
    if (step != Step::kMore) return step;
  }
  return Step::kFailed;
}

ZmtpReader::Step ZmtpReader::ReadGreeting() {
  const std::string_view got = unread();
  wanted_ = kZmtpGreetingBytes;
  if (!got.empty() && got[0] != kZmtpGreetingView[0]) return Fail("it does not speak ZMTP");
  if (got.size() > kSignatureEnd && (got[kSignatureEnd] & 1) == 0) {
    return Fail("it does not speak ZMTP");
  }
  if (got.size() > kVersionAt && static_cast<uint8_t>(got[kVersionAt]) < 3) {
    return Fail("it speaks a version of ZMTP before 3.0");
  }
  if (got.size() < kZmtpGreetingBytes) return Step::kMore;
  if (got.substr(kMechanismAt, kMechanismBytes) !=
      kZmtpGreetingView.substr(kMechanismAt, kMechanismBytes)) {
    return Fail("it wants another security mechanism than NULL");
  }
  begin_ += kZmtpGreetingBytes;
  wanted_ = 0;
  state_ = State::kHandshake;
  output_ += kZmtpReady;
  return Step::kPart;
}

ZmtpReader::Step ZmtpReader::ReadHead(Frame* frame) {
  const std::string_view got = unread();
  if (got.empty()) return Step::kMore;
  const auto flags = static_cast<uint8_t>(got[0]);
  frame->more = (flags & kZmtpMoreFlag) != 0;
  frame->command = (flags & kZmtpCommandFlag) != 0;
  if ((flags & ~(kZmtpMoreFlag | kZmtpLongFlag | kZmtpCommandFlag)) != 0 ||
      (frame->more && frame->command)) {
    return Fail("a frame has flags that nobody defines");
  }
  if (state_ == State::kHandshake && !frame->command) return Fail("a message before it is ready");
  frame->head = (flags & kZmtpLongFlag) != 0 ? kZmtpLongHead : kZmtpShortHead;
  if (got.size() < frame->head) return Step::kMore;
  const uint64_t size = ZmtpNumber(got.substr(1, frame->head - 1));
  if (frame->command ? size > kMaxCommandBytes : size > max_message_bytes_ - gathered_bytes_) {
    return Fail(frame->command ? "a command is too long" : "a message is too long");
  }
  frame->size = size;
  return Step::kPart;
}

ZmtpReader::Step ZmtpReader::OnCommand(std::string_view body) {
  const size_t name_size = body.empty() ? 0 : static_cast<uint8_t>(body[0]);
  if (name_size == 0 || body.size() < 1 + name_size) return Fail("a command has no name");
  const std::string_view name = body.substr(1, name_size);
  const std::string_view data = body.substr(1 + name_size);
  if (name == "ERROR") return Fail("it has refused the connection");
  if (state_ == State::kHandshake) {
    return name == "READY" ? OnReady(data) : Fail("a command before it is ready");
  }
  if (name != "PING") return Step::kMore;  // what is not known is left out
  if (data.size() < kPingLifeBytes || data.size() > kPingLifeBytes + kMaxPingContext) {
    return Fail("a PING has a wrong form");
  }
  const std::string_view context = data.substr(kPingLifeBytes);
  if (output_.size() > kMaxUnsentAnswers) return Fail("it does not read its answers");
  output_ += static_cast<char>(kZmtpCommandFlag);
  output_ += static_cast<char>(kZmtpPong.size() + context.size());
  output_ += kZmtpPong;
  output_ += context;
  return Step::kMore;
}

// Properties: a byte and so much of a name, four bytes and so much of a value.
ZmtpReader::Step ZmtpReader::OnReady(std::string_view properties) {
  std::string_view type;
  while (!properties.empty()) {
    const size_t name_size = static_cast<uint8_t>(properties[0]);
    if (name_size == 0 || properties.size() < 1 + name_size + 4) return Fail("READY is cut off");
    const std::string_view name = properties.substr(1, name_size);
    const uint64_t size = ZmtpNumber(properties.substr(1 + name_size, 4));
    properties.remove_prefix(1 + name_size + 4);
    if (properties.size() < size) return Fail("READY is cut off");
    if (absl::EqualsIgnoreCase({name.data(), name.size()}, "Socket-Type"))
      type = properties.substr(0, size);
    properties.remove_prefix(size);
  }
  if (type != "PUSH") return Fail("it is no PUSH socket");
  state_ = State::kTraffic;
  return Step::kMore;
}

ZmtpReader::Step ZmtpReader::OnPart(const Frame& frame, std::string_view body,
                                    std::string_view* part) {
  if (!frame.more && gathered_.empty()) {
    *part = body;
    return Step::kPart;
  }
  if (gathered_.size() == kMaxParts) return Fail("a message has too many parts");
  gathered_.emplace_back(body);
  gathered_bytes_ += body.size();
  if (frame.more) return Step::kMore;
  parts_.swap(gathered_);
  gathered_bytes_ = 0;
  *part = parts_[next_part_++];
  return Step::kPart;
}

}  // namespace portico::net
