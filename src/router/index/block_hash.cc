#include "router/index/block_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace portico::router {
namespace {

__extension__ using Wide = unsigned __int128;

void HashBytes(const char* data, size_t blocks, size_t block_bytes, uint64_t salt,
               std::vector<uint64_t>* out) {
  const size_t start = out->size();
  out->resize(start + blocks);
  // The blocks' own hashes do not wait for each other; the chain is one multiplication a block.
  for (size_t i = 0; i < blocks; ++i) {
    (*out)[start + i] = XXH3_64bits(data + i * block_bytes, block_bytes);
  }
  uint64_t before = salt;
  for (size_t i = start; i < start + blocks; ++i) before = (*out)[i] = ChainHash(before, (*out)[i]);
}

}  // namespace

uint64_t ChainHash(uint64_t before, uint64_t block) {
  const auto product =
      static_cast<Wide>(before ^ 0x9E3779B97F4A7C15ull) * (block ^ 0xD6E8FEB86659FD93ull);
  const uint64_t folded =
      static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64) ^ (block << 1);
  return folded == 0 ? 1 : folded;
}

void HashTokenBlocks(std::span<const TokenId> tokens, uint64_t salt, std::vector<uint64_t>* out) {
  HashBytes(reinterpret_cast<const char*>(tokens.data()), tokens.size() / kBlockTokens,
            sizeof(TokenId) * kBlockTokens, salt, out);
}

void HashTextBlocks(std::string_view text, uint64_t salt, std::vector<uint64_t>* out) {
  constexpr size_t kHead = size_t{kShortBlocks} * kShortBlockBytes;
  const std::string_view head = text.substr(0, kHead);
  HashBytes(head.data(), head.size() / kShortBlockBytes, kShortBlockBytes, salt, out);
  if (text.size() < kHead + kLongBlockBytes) return;
  const std::string_view rest = text.substr(kHead);
  HashBytes(rest.data(), rest.size() / kLongBlockBytes, kLongBlockBytes, out->back(), out);
}

uint64_t HashText(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

}  // namespace portico::router
