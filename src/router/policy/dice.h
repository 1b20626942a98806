// Random numbers for policies: SplitMix64 over an atomic counter. Thread safe, without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <random>

namespace portico::router {

class Dice {
 public:
  // 0: a random seed.
  explicit Dice(uint64_t seed) : state_(seed != 0 ? seed : RandomSeed()) {}

  uint64_t Next() {
    uint64_t z = state_.fetch_add(0x9E3779B97F4A7C15ull, std::memory_order_relaxed);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  // Below `bound`, which is not 0. The bias of the remainder is below bound / 2^64.
  size_t Below(size_t bound) { return static_cast<size_t>(Next() % bound); }

 private:
  static uint64_t RandomSeed() {
    std::random_device device;
    return (uint64_t{device()} << 32) | device();
  }
  std::atomic<uint64_t> state_;
};

}  // namespace portico::router
