// A fast hash of short byte strings, for tables inside one process.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace portico::tokenizer {

inline uint64_t MixHash(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t HashBytes(std::string_view text) {
  constexpr uint64_t kA = 0x9E3779B97F4A7C15u;
  constexpr uint64_t kB = 0xD6E8FEB86659FD93u;
  const char* p = text.data();
  size_t n = text.size();
  uint64_t h = n * kA;
  auto load = [](const char* at, size_t bytes) {
    uint64_t v = 0;
    std::memcpy(&v, at, bytes);
    return v;
  };
  while (n > 16) {
    h = MixHash(h ^ load(p, 8) ^ kB, load(p + 8, 8) ^ kA);
    p += 16;
    n -= 16;
  }
  uint64_t low = 0;
  uint64_t high = 0;
  if (n >= 8) {
    low = load(p, 8);
    high = load(p + n - 8, 8);
  } else if (n >= 4) {
    low = load(p, 4);
    high = load(p + n - 4, 4);
  } else if (n > 0) {
    low = static_cast<unsigned char>(p[0]) | uint64_t{static_cast<unsigned char>(p[n / 2])} << 8 |
          uint64_t{static_cast<unsigned char>(p[n - 1])} << 16;
  }
  return MixHash(h ^ low ^ kB, high ^ kA);
}

}  // namespace portico::tokenizer
