// A stable sort for orders that templates define: one that contradicts itself (NaN) or throws leaves some order, never
// an access out of bounds, which std::sort does not promise.
#pragma once

#include <algorithm>
#include <vector>

namespace portico::jinja {

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

}  // namespace portico::jinja
