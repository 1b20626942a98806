// Names for the blocks of a prompt: a block's hash covers all that stands before it, so equal hashes
// at the same place mean equal prefixes (but for 64-bit collisions, which cost a cache miss and
// nothing else). XXH3 over the block, then a multiply-and-fold with the hash before it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "message/sampling.h"

namespace portico::router {

// Tokens of a block. Engines cache pages of 1 to 64 tokens; 16 is what vLLM and smg's index use.
inline constexpr int32_t kBlockTokens = 16;
// Of text whose tokens are not known: the first blocks are short, about 16 tokens of English, since what many prompts
// share is often a short beginning; the others are long, since each block of a prompt costs a place in the index.
inline constexpr int32_t kShortBlocks = 4;
inline constexpr int32_t kShortBlockBytes = 64;
inline constexpr int32_t kLongBlockBytes = 256;
// Of a block of text, on average over the blocks of a prompt of some thousand bytes.
inline constexpr double kMeanTextBlockBytes = 216;
// Of text whose tokens nobody has counted: a token for four bytes.
inline constexpr double kTokensOfByte = 0.25;

// Never 0. `salt` keeps what must not match apart: models, LoRA adapters.
uint64_t ChainHash(uint64_t before, uint64_t block);

// Appends a hash for each whole block; the rest at the end has none.
void HashTokenBlocks(std::span<const TokenId> tokens, uint64_t salt, std::vector<uint64_t>* out);
void HashTextBlocks(std::string_view text, uint64_t salt, std::vector<uint64_t>* out);

// What so many blocks of a text cover, from its beginning.
constexpr int64_t BytesOfTextBlocks(int64_t blocks) {
  return blocks <= kShortBlocks
             ? blocks * kShortBlockBytes
             : kShortBlocks * kShortBlockBytes + (blocks - kShortBlocks) * kLongBlockBytes;
}

// The salt of prompts that name no model.
inline constexpr uint64_t kNoModelSalt = 1;
// A string's hash as a salt or a key.
uint64_t HashText(std::string_view text);

}  // namespace portico::router
