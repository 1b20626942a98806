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

// Blocks of 256 code points, equal blocks stored once.
class PropertyTable {
 public:
  PropertyTable() {
    std::vector<uint16_t> flat(kLimit);
    Fill(kCategoryRuns, kCategoryRunsSize, 0, &flat);
    Fill(kFlagRuns, kFlagRunsSize, 8, &flat);
    for (uint32_t block = 0; block < kLimit / kBlock; ++block) {
      index_[block] = Intern(flat.data() + block * kBlock);
    }
  }

  uint16_t Get(uint32_t c) const {
    return c < kLimit ? blocks_[index_[c / kBlock] * kBlock + c % kBlock] : 0;
  }

 private:
  static void Fill(const uint32_t* runs, size_t size, int shift, std::vector<uint16_t>* flat) {
    size_t at = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
      auto value = static_cast<uint16_t>(runs[i + 1] << shift);
      for (uint32_t n = runs[i]; n > 0 && at < flat->size(); --n) (*flat)[at++] |= value;
    }
  }

  uint16_t Intern(const uint16_t* block) {
    for (size_t at = 0; at < blocks_.size(); at += kBlock) {
      if (std::memcmp(&blocks_[at], block, kBlock * sizeof(uint16_t)) == 0) {
        return static_cast<uint16_t>(at / kBlock);
      }
    }
    blocks_.insert(blocks_.end(), block, block + kBlock);
    return static_cast<uint16_t>(blocks_.size() / kBlock - 1);
  }

  uint16_t index_[kLimit / kBlock];
  std::vector<uint16_t> blocks_;
};

}  // namespace

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
