#include "net/socket/output_queue.h"

#include <algorithm>
#include <utility>

namespace portico::net {

std::string BufferPool::Take() {
  if (spare_.empty()) return {};
  std::string buffer = std::move(spare_.back());
  spare_.pop_back();
  bytes_ -= buffer.capacity();
  return buffer;
}

void BufferPool::Give(std::string buffer) {
  const size_t bytes = buffer.capacity();
  if (spare_.size() >= kMaxSpare || bytes > kMaxCapacity || bytes_ + bytes > kMaxBytes) return;
  bytes_ += bytes;
  buffer.clear();
  spare_.push_back(std::move(buffer));
}

size_t OutputQueue::size() const {
  return parts_.empty() ? 0 : before_ + parts_.back().size() - offset_;
}

std::string& OutputQueue::Tail() {
  if (!open_ || parts_.back().size() >= kPartSize) {
    if (!parts_.empty()) before_ += parts_.back().size();
    parts_.push_back(pool_.Take());
    open_ = true;
  }
  return parts_.back();
}

void OutputQueue::Append(std::string bytes) {
  if (bytes.size() < kMoveSize) {
    Tail().append(bytes);
    return;
  }
  if (!parts_.empty()) before_ += parts_.back().size();
  parts_.push_back(std::move(bytes));
  open_ = false;
}

int OutputQueue::Gather(iovec* parts, int max) const {
  int count = 0;
  size_t skip = offset_;
  for (size_t i = first_; i < parts_.size() && count < max; ++i) {
    const std::string& part = parts_[i];
    if (part.size() > skip) {
      parts[count++] = {const_cast<char*>(part.data()) + skip, part.size() - skip};
    }
    skip = 0;
  }
  return count;
}

void OutputQueue::Consume(size_t bytes) {
  offset_ += bytes;
  while (first_ < parts_.size() && offset_ >= parts_[first_].size()) {
    std::string& part = parts_[first_];
    offset_ -= part.size();
    if (++first_ < parts_.size()) before_ -= part.size();
    pool_.Give(std::move(part));
    part = std::string();
  }
  if (first_ < parts_.size()) {
    if (first_ < kMaxSentParts) return;
    // A stream that never quite catches up must not keep the shells of all it has sent.
    parts_.erase(parts_.begin(), parts_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    return;
  }
  parts_.clear();
  first_ = offset_ = before_ = 0;
  open_ = false;
}

}  // namespace portico::net
