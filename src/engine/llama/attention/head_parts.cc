#include "engine/llama/attention/head_parts.h"

#include <algorithm>

namespace portico::llama {

HeadParts::HeadParts(int32_t heads, int32_t key_heads, size_t blocks, int32_t threads)
    : blocks_(blocks), key_heads_(key_heads), group_(heads / key_heads), cuts_(1) {
  const size_t whole = blocks * static_cast<size_t>(key_heads);
  if (whole == 0) return;
  const size_t wanted = (static_cast<size_t>(threads) + whole - 1) / whole;
  cuts_ = static_cast<int32_t>(std::clamp<size_t>(wanted, 1, static_cast<size_t>(group_)));
}

HeadRange HeadParts::heads_of(size_t part) const {
  const auto at = static_cast<int32_t>(part % static_cast<size_t>(key_heads_ * cuts_));
  const int32_t first = at / cuts_ * group_, cut = at % cuts_;
  return {first + group_ * cut / cuts_, first + group_ * (cut + 1) / cuts_};
}

}  // namespace portico::llama
