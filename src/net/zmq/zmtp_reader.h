// What a PULL socket reads from one PUSH that has connected to it: ZMTP 3.0 and 3.1 (rfc.zeromq.org/spec/23 and /37) with the
// mechanism NULL. Bytes in, parts of messages out; no socket.
//
// The peer is not trusted: frames of a wrong form, a message beyond the limits and a peer that never reads its answers end
// the connection. Memory follows what a peer has sent, not what it announces. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace portico::net {

class ZmtpReader {
 public:
  enum class Step : uint8_t {
    kPart,    // one is there
    kMore,    // more bytes are needed
    kFailed,  // the connection is to be closed; why() tells it
  };

  static constexpr size_t kMaxParts = 256;  // of a message

  // `max_message_bytes`: the sum of a message's parts.
  explicit ZmtpReader(size_t max_message_bytes);

  // Where to read the peer's next bytes to, at least one; then Added() says how many have come. Not before Next() has
  // given kMore. Parts that Next() gave are not valid any more.
  std::span<char> Space();
  void Added(size_t size) { end_ += size; }

  // *part is valid until the next call of Space() or Next(). A message's parts are given once all have come.
  Step Next(std::string_view* part);
  // Whether the part that was given last is followed by another one of its message.
  bool HasMore() const { return next_part_ < parts_.size(); }
  // The greeting and the answers that are to be sent to the peer. Whoever sends them removes them.
  std::string& output() { return output_; }
  // The peer has said that it is a PUSH.
  bool is_ready() const { return state_ == State::kTraffic; }
  std::string_view why() const { return why_; }

 private:
  enum class State : uint8_t { kGreeting, kHandshake, kTraffic, kFailed };
  struct Frame {
    bool more = false;
    bool command = false;
    size_t head = 0;  // bytes before the body
    size_t size = 0;  // of the body
  };

  std::string_view unread() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void MakeSpace(size_t have, size_t wanted);
  Step Fail(std::string_view why);
  Step ReadGreeting();
  // kPart: its head has come.
  Step ReadHead(Frame* frame);
  Step OnCommand(std::string_view body);
  Step OnReady(std::string_view properties);
  Step OnPart(const Frame& frame, std::string_view body, std::string_view* part);

  const size_t max_message_bytes_;
  State state_ = State::kGreeting;
  std::string output_;
  std::string_view why_;

  std::unique_ptr<char[]> buffer_;
  size_t capacity_ = 0;
  size_t begin_ = 0;  // of what has not been read
  size_t end_ = 0;
  size_t wanted_ = 0;  // bytes from begin_ on that the frame under way needs; 0: unknown

  std::vector<std::string> gathered_;  // of a message of several parts, until the last one has come
  size_t gathered_bytes_ = 0;
  std::vector<std::string> parts_;  // of such a message, all of them
  size_t next_part_ = 0;            // of parts_: the one that is given next
};

}  // namespace portico::net
