// What threads compute of a layer's attention, each part alone.
//
// A part is the heads of a block that share a key, which read its cells together. A long request that decodes alone is one
// block: where all heads share a key (multi-query attention, DeepSeek's compressed keys) that would be one thread's work.
// So where there are fewer such parts than threads, fewer heads are a part.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/llama/attention/cell_attention.h"

namespace portico::llama {

class HeadParts {
 public:
  // `key_heads` divides `heads`.
  HeadParts(int32_t heads, int32_t key_heads, size_t blocks, int32_t threads);

  size_t count() const { return blocks_ * static_cast<size_t>(key_heads_ * cuts_); }
  size_t block_of(size_t part) const { return part / static_cast<size_t>(key_heads_ * cuts_); }
  HeadRange heads_of(size_t part) const;

 private:
  size_t blocks_;
  int32_t key_heads_;
  int32_t group_;  // heads that share a key
  int32_t cuts_;   // parts of a group
};

}  // namespace portico::llama
