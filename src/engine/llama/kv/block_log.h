// What the prefix tree takes in and lets go, as events for gateways (engine/kv_events.h). A block is kBlockTokens tokens of
// a prefix, from a multiple of that on; what stands behind the last whole block is not told.
//
// A block's name is SGLang's: SHA-256 over the name of the block before it (32 bytes; nothing for the first) and its
// tokens (32 bits each, little-endian); events carry the first 8 bytes, big-endian and signed.
//
// The engine's thread only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/kv_events.h"
#include "message/sampling.h"

namespace portico::llama {

inline constexpr int32_t kBlockTokens = 16;

using BlockDigest = std::array<uint8_t, 32>;

// `before`: of the block before it; null: it is the first.
BlockDigest DigestOf(const BlockDigest* before, std::span<const TokenId> tokens);
int64_t HashOf(const BlockDigest& digest);

class BlockLog {
 public:
  // The prefix `tokens` is in the tree from now on; it was up to `begin`. `before`: the last whole block up to there, or
  // null. Appends the digests of those that have been added.
  void Stored(std::span<const TokenId> tokens, int32_t begin, const BlockDigest* before,
              std::vector<BlockDigest>* digests);
  void Removed(std::span<const BlockDigest> digests);
  void Cleared();
  // Publishes what has come since the last time.
  void Deliver(KvEventHub* hub);

 private:
  std::vector<KvEvent> events_;
};

}  // namespace portico::llama
