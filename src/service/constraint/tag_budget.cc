#include "service/constraint/tag_budget.h"

#include <atomic>

namespace portico {
namespace {

std::atomic<size_t> max_tag_bytes{size_t{256} << 10};

}  // namespace

void SetMaxTagBytes(size_t bytes) { max_tag_bytes.store(bytes, std::memory_order_relaxed); }

size_t MaxTagBytes() { return max_tag_bytes.load(std::memory_order_relaxed); }

}  // namespace portico
