#include "text/unicode.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "text/unicode_tables.h"

namespace portico {
namespace {

using namespace unicode_tables;

constexpr uint32_t kLimit = 0x110000;
constexpr uint32_t kBlock = 256;

// A list of (length, value) pairs, walked beside another one.
class Runs {
 public:
  Runs(const uint32_t* rows, size_t size) : row_(rows), end_(rows + size), left_(rows[0]) {}

  uint32_t left() const { return left_; }
  uint32_t value() const { return row_[1]; }
  // Goes on by `count`, at most what is left.
  void Skip(uint32_t count) {
    left_ -= count;
    if (left_ == 0 && row_ + 2 < end_) {
      row_ += 2;
      left_ = row_[0];
    }
  }

 private:
  const uint32_t* row_;
  const uint32_t* end_;
  uint32_t left_;
};

// Blocks of 256 code points, equal blocks stored once.
class PropertyTable {
 public:
  PropertyTable() {
    std::vector<uint16_t> block;
    for (const PropertyRun& run : PropertyRuns()) {
      for (uint32_t c = run.first; c < run.first + run.count;) {
        uint32_t count = std::min(run.first + run.count - c, kBlock - c % kBlock);
        block.insert(block.end(), count, run.properties.bits());
        c += count;
        if (c % kBlock != 0) continue;
        index_[c / kBlock - 1] = Intern(block);
        block.clear();
      }
    }
  }

  uint16_t Get(uint32_t c) const {
    return c < kLimit ? blocks_[index_[c / kBlock] * kBlock + c % kBlock] : 0;
  }

 private:
  uint16_t Intern(const std::vector<uint16_t>& block) {
    for (size_t at = blocks_.size(); at > 0; at -= kBlock) {
      if (std::memcmp(&blocks_[at - kBlock], block.data(), kBlock * sizeof(uint16_t)) == 0) {
        return static_cast<uint16_t>(at / kBlock - 1);
      }
    }
    blocks_.insert(blocks_.end(), block.begin(), block.end());
    return static_cast<uint16_t>(blocks_.size() / kBlock - 1);
  }

  uint16_t index_[kLimit / kBlock];
  std::vector<uint16_t> blocks_;
};

}  // namespace

std::vector<PropertyRun> PropertyRuns() {
  std::vector<PropertyRun> out;
  Runs categories(kCategoryRuns, kCategoryRunsSize);
  Runs flags(kFlagRuns, kFlagRunsSize);
  for (uint32_t c = 0; c < kLimit;) {
    uint32_t count = std::min({categories.left(), flags.left(), kLimit - c});
    auto bits = static_cast<uint16_t>(categories.value() | flags.value() << 8);
    out.push_back({c, count, CharProperties(bits)});
    categories.Skip(count);
    flags.Skip(count);
    c += count;
  }
  return out;
}

CharProperties PropertiesOf(uint32_t code_point) {
  static const PropertyTable* const table = new PropertyTable;
  return CharProperties(table->Get(code_point));
}

uint32_t ToLowercase(uint32_t code_point) {
  if (code_point < 0x80) {
    return code_point - 'A' < 26 ? code_point + 32 : code_point;
  }
  constexpr size_t kRow = 4;
  auto wanted = static_cast<int32_t>(code_point);
  size_t low = 0;
  size_t high = kLowercaseSize / kRow;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (kLowercase[middle * kRow] <= wanted) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  // Rows of step 2 may interleave with their neighbour, so the row before is looked at as well.
  for (size_t row = low; row > 0 && low - row < 2; --row) {
    const int32_t* entry = &kLowercase[(row - 1) * kRow];
    int32_t from_first = wanted - entry[0];
    if (from_first % entry[2] == 0 && from_first / entry[2] < entry[1]) {
      return static_cast<uint32_t>(wanted + entry[3]);
    }
  }
  return code_point;
}

}  // namespace portico
