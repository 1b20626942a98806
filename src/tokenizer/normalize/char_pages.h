// What a table says of each character, filled in when a text first needs it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace portico::tokenizer {

struct DecodedChar {
  uint32_t code_point;
  uint32_t length;
};

// The character at the start of valid UTF-8.
[[gnu::always_inline]] inline DecodedChar DecodeChar(const char* p) {
  auto b = reinterpret_cast<const unsigned char*>(p);
  if (b[0] < 0x80) return {b[0], 1};
  if (b[0] < 0xE0) return {(b[0] & 31u) << 6 | (b[1] & 63u), 2};
  if (b[0] < 0xF0) return {(b[0] & 15u) << 12 | (b[1] & 63u) << 6 | (b[2] & 63u), 3};
  return {(b[0] & 7u) << 18 | (b[1] & 63u) << 12 | (b[2] & 63u) << 6 | (b[3] & 63u), 4};
}

// Pages of 256 characters. Any thread may ask; two that need a new page at once both make it, and one is kept.
template <typename Page>
class CharPages {
 public:
  static constexpr uint32_t kPage = 256;

  CharPages() : pages_(0x110000 / kPage) {}
  ~CharPages() {
    for (std::atomic<const Page*>& page : pages_) delete page.load(std::memory_order_relaxed);
  }
  CharPages(const CharPages&) = delete;
  CharPages& operator=(const CharPages&) = delete;

  // The page of character `c`; `make(first)` gives a new one for the characters from `first` on.
  template <typename Make>
  const Page& Get(uint32_t c, Make make) const {
    std::atomic<const Page*>& slot = pages_[c / kPage];
    if (const Page* page = slot.load(std::memory_order_acquire)) [[likely]]
      return *page;
    std::unique_ptr<const Page> made = make(c / kPage * kPage);
    const Page* expected = nullptr;
    if (slot.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel)) {
      return *made.release();
    }
    return *expected;
  }

 private:
  mutable std::vector<std::atomic<const Page*>> pages_;
};

}  // namespace portico::tokenizer
