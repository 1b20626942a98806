#include "tokenizer/model/double_array.h"

#include <algorithm>
#include <cstddef>

namespace portico::tokenizer {

class DoubleArray::Builder {
 public:
  using Keys = std::vector<std::pair<std::string_view, TokenId>>;

  Builder(const Keys& keys, std::vector<Unit>* units) : keys_(keys), units_(*units) {}

  void Build() {
    units_.clear();
    AddBlock();
    Take(kRoot, kNoNode - 1);  // nobody's child, and not free
    // Depth first, so that a chain's nodes lie together.
    std::vector<Range> left = {{kRoot, 0, keys_.size(), 0}};
    while (!left.empty()) {
      Range range = left.back();
      left.pop_back();
      PlaceChildren(range, &left);
    }
  }

 private:
  // The keys from `first` to `end` share the node's `depth` bytes.
  struct Range {
    uint32_t node;
    size_t first;
    size_t end;
    size_t depth;
  };
  struct Child {
    unsigned char label;
    size_t first;
    size_t end;
  };
  struct Links {
    uint32_t previous = kNoNode;
    uint32_t next = kNoNode;
    uint8_t refused = 0;  // how often siblings did not fit there
  };
  struct List {
    uint32_t first = kNoNode;
    uint32_t last = kNoNode;
  };

  void Push(List* list, uint32_t at) {
    links_[at].previous = list->last;
    links_[at].next = kNoNode;
    (list->last == kNoNode ? list->first : links_[list->last].next) = at;
    list->last = at;
  }

  void Remove(List* list, uint32_t at) {
    const Links& l = links_[at];
    (l.previous == kNoNode ? list->first : links_[l.previous].next) = l.next;
    (l.next == kNoNode ? list->last : links_[l.next].previous) = l.previous;
  }

  void AddBlock() {
    auto begin = static_cast<uint32_t>(units_.size());
    units_.resize(begin + kBlock);
    links_.resize(begin + kBlock);
    for (uint32_t at = begin; at < begin + kBlock; ++at) Push(&fresh_, at);
  }

  List* ListOf(uint32_t at) { return links_[at].refused < kMostRefusals ? &fresh_ : &leftover_; }

  void Take(uint32_t at, uint32_t parent) {
    Remove(ListOf(at), at);
    units_[at].parent = parent;
  }

  bool Fits(uint32_t base) const {
    return std::all_of(children_.begin(), children_.end(),
                       [&](const Child& c) { return units_[base ^ c.label].parent == kNoNode; });
  }

  // Where all children are free. A place that did not do for several families is left to only children, so that
  // the search stays short and the array dense.
  uint32_t FindBase() {
    if (children_.size() == 1) {
      if (leftover_.first == kNoNode && fresh_.first == kNoNode) AddBlock();
      return (leftover_.first != kNoNode ? leftover_.first : fresh_.first) ^ children_[0].label;
    }
    for (uint32_t at = fresh_.first; at != kNoNode;) {
      uint32_t base = at ^ children_[0].label;
      if (Fits(base)) return base;
      uint32_t next = links_[at].next;
      if (links_[at].refused + 1 == kMostRefusals) {
        Remove(&fresh_, at);
        Push(&leftover_, at);
      }
      ++links_[at].refused;
      at = next;
    }
    auto block = static_cast<uint32_t>(units_.size());
    AddBlock();
    return block;
  }

  void PlaceChildren(const Range& range, std::vector<Range>* left) {
    size_t first = range.first;
    for (; first < range.end && keys_[first].first.size() == range.depth; ++first) {
      units_[range.node].value = keys_[first].second;
    }
    children_.clear();
    while (first < range.end) {
      auto label = static_cast<unsigned char>(keys_[first].first[range.depth]);
      size_t end = first + 1;
      while (end < range.end &&
             static_cast<unsigned char>(keys_[end].first[range.depth]) == label) {
        ++end;
      }
      children_.push_back({label, first, end});
      first = end;
    }
    if (children_.empty()) return;
    uint32_t base = FindBase();
    units_[range.node].base = base;
    for (const Child& c : children_) Take(base ^ c.label, range.node);
    for (const Child& c : children_) {
      left->push_back({base ^ c.label, c.first, c.end, range.depth + 1});
    }
  }

  static constexpr uint8_t kMostRefusals = 4;

  const Keys& keys_;
  std::vector<Unit>& units_;
  std::vector<Links> links_;  // of the free places
  List fresh_;
  List leftover_;
  std::vector<Child> children_;
};

DoubleArray::DoubleArray(std::vector<std::pair<std::string_view, TokenId>> keys) {
  std::sort(keys.begin(), keys.end());
  std::vector<Unit> units;
  Builder(keys, &units).Build();
  units_ = {};
  units_.append(units.data(), units.size());
}

std::optional<DoubleArray> DoubleArray::Restore(CompiledReader* in, TokenId limit) {
  DoubleArray out;
  if (!in->Rows(&out.units_) || out.units_.empty() || out.units_.size() % kBlock != 0 ||
      out.units_.size() >= kNoNode) {
    return std::nullopt;
  }
  const auto size = static_cast<uint32_t>(out.units_.size());
  bool known = true;
  for (const Unit& unit : out.units_) {
    known &= unit.base < size;
    known &= unit.value >= -1 && unit.value < limit;
  }
  if (!known) return std::nullopt;
  return out;
}

}  // namespace portico::tokenizer
