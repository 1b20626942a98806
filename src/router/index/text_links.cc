#include "router/index/text_links.h"

#include <algorithm>
#include <bit>
#include <new>

namespace portico::router {

TextLinks::TextLinks(size_t max_bytes)
    : mask_(std::bit_floor(std::max<size_t>(max_bytes / sizeof(Slot), 256)) - 1),
      slots_(static_cast<Slot*>(std::calloc(mask_ + 1, sizeof(Slot)))) {
  if (slots_ == nullptr) throw std::bad_alloc();
}

void TextLinks::Link(uint64_t tokens, uint64_t text) {
  Slot& slot = SlotOf(tokens);
  if (slot.tokens != tokens) slot = Slot{.tokens = tokens};
  const auto end = slot.texts.end();
  if (std::find(slot.texts.begin(), end, text) != end) return;
  const auto place = std::find(slot.texts.begin(), end, uint64_t{0});
  if (place != end) {
    *place = text;
    return;
  }
  std::shift_left(slot.texts.begin(), end, 1);
  slot.texts.back() = text;
}

const std::array<uint64_t, TextLinks::kTexts>& TextLinks::Of(uint64_t tokens) const {
  static constexpr std::array<uint64_t, kTexts> kNone{};
  const Slot& slot = SlotOf(tokens);
  return slot.tokens == tokens ? slot.texts : kNone;
}

}  // namespace portico::router
