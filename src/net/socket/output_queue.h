// What a connection has written and the kernel has not taken yet. Small writes gather in one
// buffer, so that a turn's output leaves in one send; big bodies are moved in and never copied.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace portico::net {

// Buffers that connections of one shard share, so that idle ones hold none.
class BufferPool {
 public:
  std::string Take();
  void Give(std::string buffer);

 private:
  static constexpr size_t kMaxSpare = 2048;
  // A part that has reached its size may have grown to twice of it.
  static constexpr size_t kMaxCapacity = 128 << 10;
  static constexpr size_t kMaxBytes = 4 << 20;  // of all that are spare
  std::vector<std::string> spare_;
  size_t bytes_ = 0;  // of what is spare
};

class OutputQueue {
 public:
  explicit OutputQueue(BufferPool& pool) : pool_(pool) {}

  bool empty() const { return size() == 0; }
  size_t size() const;

  // The buffer at the end, to append to. Valid until the next call of anything.
  std::string& Tail();
  // Appends `bytes`: by move where it is big.
  void Append(std::string bytes);

  // Fills at most `max` parts with what is to be sent next.
  int Gather(iovec* parts, int max) const;
  // Forgets the first `bytes`, at most size().
  void Consume(size_t bytes);

 private:
  static constexpr size_t kPartSize =
      64 << 10;  // a gathering buffer that has reached it gets a successor
  static constexpr size_t kMoveSize = 8 << 10;  // from here on moving is cheaper than copying

  static constexpr size_t kMaxSentParts = 64;

  BufferPool& pool_;
  std::vector<std::string> parts_;
  size_t first_ = 0;   // the part that is being sent
  size_t offset_ = 0;  // in it
  size_t before_ = 0;  // bytes in all parts but the last
  bool open_ = false;  // the last part gathers
};

}  // namespace portico::net
