// The heads of the frames in what an HTTP/2 client sends (RFC 9113, 4.1), which nghttp2 does not
// show for DATA that it ignores.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace portico::net {

// Fed every byte of a connection in order, its preface included.
class Http2FrameHeads {
 public:
  struct Head {
    uint8_t type = 0;
    int32_t stream = 0;
  };

  // The next head that ends within `bytes`, from whose front what has been read is taken. False
  // when they are used up.
  bool Next(std::string_view* bytes, Head* head) {
    while (!bytes->empty()) {
      const size_t passed = std::min(to_pass_, bytes->size());
      to_pass_ -= passed;
      bytes->remove_prefix(passed);
      const size_t taken = std::min(sizeof head_ - have_, bytes->size());
      if (taken == 0) continue;
      std::memcpy(head_ + have_, bytes->data(), taken);
      bytes->remove_prefix(taken);
      have_ += taken;
      if (have_ < sizeof head_) continue;
      have_ = 0;
      to_pass_ = size_t{head_[0]} << 16 | size_t{head_[1]} << 8 | head_[2];
      head->type = head_[3];
      head->stream = static_cast<int32_t>(uint32_t{head_[5]} << 24 | uint32_t{head_[6]} << 16 |
                                          uint32_t{head_[7]} << 8 | head_[8]) &
                     0x7fffffff;
      return true;
    }
    return false;
  }

 private:
  size_t to_pass_ = NGHTTP2_CLIENT_MAGIC_LEN;  // until the next head: the preface, then payloads
  size_t have_ = 0;                            // of head_
  uint8_t head_[9];
};

}  // namespace portico::net
