// Bytes that grow within a bound that all of their kind share.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace portico {

// They count in `all` until the last who has them lets go. One thread appends; those who have them may be on any. `all`
// outlives them.
class HeldBytes {
 public:
  HeldBytes(std::atomic<size_t>& all, size_t most)
      : all_(all), most_(most), bytes_(new std::string(), [&all](std::string* bytes) {
          all.fetch_sub(bytes->size());
          delete bytes;
        }) {}

  // False: with these, all would be more than `most`; they are left out.
  bool Append(std::string_view more) {
    if (all_.fetch_add(more.size()) + more.size() > most_) {
      all_.fetch_sub(more.size());
      return false;
    }
    bytes_->append(more);
    return true;
  }

  size_t size() const { return bytes_->size(); }
  // The last that is asked of this.
  std::shared_ptr<const std::string> Take() { return std::move(bytes_); }

 private:
  std::atomic<size_t>& all_;
  const size_t most_;
  std::shared_ptr<std::string> bytes_;
};

}  // namespace portico
