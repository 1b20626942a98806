#include "engine/llama/attention/head_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace portico::llama {
namespace {

// One request that decodes, whose heads all share a key, was computed by one thread however many there were.
TEST(HeadParts, GiveEveryThreadSomethingAndEveryHeadToOne) {
  for (const auto& [heads, key_heads] : {std::pair{16, 1}, {9, 1}, {14, 2}, {16, 8}, {4, 4}}) {
    for (const size_t blocks : {size_t{0}, size_t{1}, size_t{3}, size_t{40}}) {
      for (const int32_t threads : {1, 2, 5, 64}) {
        const HeadParts parts(heads, key_heads, blocks, threads);
        const auto most = blocks * static_cast<size_t>(heads);
        EXPECT_GE(parts.count(), std::min(static_cast<size_t>(threads), most));
        std::vector<int32_t> computed(most);
        for (size_t i = 0; i < parts.count(); ++i) {
          const HeadRange range = parts.heads_of(i);
          ASSERT_LT(range.begin, range.end);
          const int32_t group = heads / key_heads;
          EXPECT_EQ(range.begin / group, (range.end - 1) / group);
          for (int32_t head = range.begin; head < range.end; ++head) {
            ++computed[parts.block_of(i) * static_cast<size_t>(heads) + static_cast<size_t>(head)];
          }
        }
        EXPECT_EQ(computed, std::vector<int32_t>(most, 1));
      }
    }
  }
  EXPECT_EQ(HeadParts(16, 8, 1, 8).count(), 8u);  // not cut where there is enough
}

}  // namespace
}  // namespace portico::llama
