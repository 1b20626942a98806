// Which blocks of text stand for which prefixes of tokens. A gateway chooses by a prompt's text, before it is tokenized;
// workers tell of tokens. Once a prompt has been tokenized both are known, and the place in its tokens where a block of its
// text ends is about where it ends in the text. A table of a fixed size in which what is new replaces what is old.
// Not thread safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace portico::router {

class TextLinks {
 public:
  // Blocks of text that end within the same block of tokens; more are not kept.
  static constexpr size_t kTexts = 3;

  // Takes at most `max_bytes`, and at least some KiB; pages that are not used cost nothing.
  explicit TextLinks(size_t max_bytes);

  void Link(uint64_t tokens, uint64_t text);
  // Valid until the next Link(). Unused places, at the end, are 0.
  const std::array<uint64_t, kTexts>& Of(uint64_t tokens) const;
  size_t bytes() const { return (mask_ + 1) * sizeof(Slot); }

 private:
  struct Slot {
    uint64_t tokens = 0;
    std::array<uint64_t, kTexts> texts{};
  };
  struct Free {
    void operator()(Slot* slots) const { std::free(slots); }
  };

  Slot& SlotOf(uint64_t tokens) const { return slots_.get()[(tokens >> 20) & mask_]; }

  size_t mask_;
  std::unique_ptr<Slot, Free> slots_;
};

}  // namespace portico::router
