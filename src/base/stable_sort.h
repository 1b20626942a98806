// A stable sort. Unlike std::sort it bears orders that contradict themselves (a template may sort NaN) or throw: some
// order comes out, never an access out of bounds. Unlike libstdc++ 12's std::stable_sort it compiles without a
// deprecation warning under Clang 19.

#pragma once

#include <algorithm>
#include <vector>

namespace portico {

// `less(b, a)` is asked only for a before b; merging runs of doubling length, n log n comparisons.
template <typename T, typename Less>
void StableSort(std::vector<T>* items, Less less) {
  std::vector<T> merged(items->size());
  for (size_t width = 1; width < items->size(); width *= 2) {
    for (size_t start = 0; start < items->size(); start += 2 * width) {
      const size_t middle = std::min(start + width, items->size());
      const size_t end = std::min(start + 2 * width, items->size());
      size_t left = start;
      size_t right = middle;
      for (size_t to = start; to < end; ++to) {
        const bool take_right =
            left == middle || (right < end && less((*items)[right], (*items)[left]));
        merged[to] = (*items)[take_right ? right++ : left++];
      }
    }
    items->swap(merged);
  }
}

}  // namespace portico
