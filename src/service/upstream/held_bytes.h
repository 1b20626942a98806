// Bytes that grow within a bound that all of their kind share.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace portico {

// What has come counts in `all` until the last who has it lets go. One thread appends; those who have the bytes may be on any.
// `all` outlives them.
class HeldBytes {
 public:
  HeldBytes(std::atomic<size_t>& all, size_t most)
      : most_(most), held_(std::make_shared<Counted>(all)) {}

  // So many are announced. They count, and get memory, only as they come: who announces much and sends little holds little.
  void Expect(size_t size) { expected_ = size; }
  // False: with these, all would be more than `most`; they are left out.
  bool Append(std::string_view more) {
    if (held_->all.fetch_add(more.size()) + more.size() > most_) {
      held_->all.fetch_sub(more.size());
      return false;
    }
    held_->counted += more.size();
    Grow(size() + more.size());
    held_->bytes.append(more);
    return true;
  }

  size_t size() const { return held_->bytes.size(); }
  // Until the next Append().
  std::string_view view() const { return held_->bytes; }
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

  // The last of its steps ends at what is expected. Together they move an eighth of the bytes or so, and no step moves more:
  // a few milliseconds of a shard for the largest file. Pages that have not been written take no memory.
  static constexpr size_t kStep = 8;
  void Grow(size_t size) {
    if (size <= held_->bytes.capacity() || size > expected_) return;  // append() doubles
    size_t step = expected_;
    while (step / kStep >= size) step /= kStep;
    held_->bytes.reserve(step);
  }

  const size_t most_;
  size_t expected_ = 0;
  std::shared_ptr<Counted> held_;
};

}  // namespace portico
