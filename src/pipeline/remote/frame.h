// Messages between hosts, on a stream of bytes: a head of kFrameHead bytes, the message, and behind
// it the bytes that within a host lie in shared memory.
//
//   4 bytes  size of the message, big endian: 1 to kMaxDatagram
//   4 bytes  size of what is behind it, big endian: 0 to kMaxFrameBytes
//
// Sizes are checked before memory is taken, and memory is filled only as bytes come.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "pipeline/process/message.h"

namespace portico::pipeline {

inline constexpr size_t kFrameHead = 8;
inline constexpr size_t kMaxFrameBytes = size_t{1} << 30;

std::array<char, kFrameHead> FrameHead(const Datagram& message);
// Can be sent in a frame.
bool FitsFrame(const Datagram& message);

class FrameReader {
 public:
  FrameReader();

  // True: `message` is the next one. False: more bytes are needed. INVALID_ARGUMENT: a size out of
  // range; nothing more can be read.
  StatusOr<bool> Next(Datagram* message);
  // Where the next bytes shall go, after Next() was false; Filled() says how many came, maybe none.
  std::span<char> Space();
  void Filled(size_t bytes);

 private:
  size_t Take(size_t wanted, std::string* to);

  const std::unique_ptr<char[]> buffer_;  // bytes [begin_, end_) have come and are not used
  size_t begin_ = 0;
  size_t end_ = 0;
  bool in_frame_ = false;
  size_t message_size_ = 0;
  size_t behind_size_ = 0;
  std::string message_;
  std::string behind_;
  std::optional<size_t> direct_;  // Space() was at the end of behind_, which had this size
};

}  // namespace portico::pipeline
