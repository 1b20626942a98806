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
      : most_(most), held_(std::make_shared<Counted>(all)) {}

  // So many will come: they are counted from here on, and are not moved as they come. False: as Append().
  bool Reserve(size_t size) {
    if (!Count(size)) return false;
    held_->bytes.reserve(size);
    return true;
  }
  // False: with these, all would be more than `most`; they are left out.
  bool Append(std::string_view more) {
    if (!Count(size() + more.size())) return false;
    held_->bytes.append(more);
    return true;
  }

  size_t size() const { return held_->bytes.size(); }
  // The last that is asked of this.
  std::shared_ptr<const std::string> Take() {
    const std::string* bytes = &held_->bytes;
    return {std::move(held_), bytes};
  }

 private:
  struct Counted {
    explicit Counted(std::atomic<size_t>& of_all) : all(of_all) {}
    ~Counted() { all.fetch_sub(counted); }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    std::atomic<size_t>& all;
    size_t counted = 0;
    std::string bytes;
  };

  bool Count(size_t size) {
    if (size <= held_->counted) return true;
    const size_t more = size - held_->counted;
    if (held_->all.fetch_add(more) + more > most_) {
      held_->all.fetch_sub(more);
      return false;
    }
    held_->counted = size;
    return true;
  }

  const size_t most_;
  std::shared_ptr<Counted> held_;
};

}  // namespace portico
