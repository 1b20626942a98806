// A random number that is a function of what it is for, not of what was drawn before: Philox 4x32
// with ten rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A
// stream's draws so do not depend on its batch, on retraction or on other streams.
#pragma once

#include <array>
#include <cstdint>

namespace portico {

inline std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, uint64_t key) {
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ k0, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ k1, static_cast<uint32_t>(a)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return counter;
}

// Uniform in [0, 1), 53 bits.
inline double UniformDraw(uint64_t seed, int32_t choice, int32_t position) {
  const std::array<uint32_t, 4> bits =
      Philox4x32({static_cast<uint32_t>(position), static_cast<uint32_t>(choice), 0, 0}, seed);
  const uint64_t word = (uint64_t{bits[0]} << 32 | bits[1]) >> 11;
  return static_cast<double>(word) * 0x1.0p-53;
}

}  // namespace portico
