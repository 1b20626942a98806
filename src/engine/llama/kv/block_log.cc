#include "engine/llama/kv/block_log.h"

#include <openssl/evp.h>

#include <bit>
#include <memory>
#include <utility>

#include "base/unix_time.h"

namespace portico::llama {
namespace {

struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

}  // namespace

BlockDigest DigestOf(const BlockDigest* before, std::span<const TokenId> tokens) {
  static_assert(std::endian::native == std::endian::little && sizeof(TokenId) == 4);
  thread_local const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  BlockDigest digest{};
  EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
  if (before != nullptr) EVP_DigestUpdate(context.get(), before->data(), before->size());
  EVP_DigestUpdate(context.get(), tokens.data(), tokens.size_bytes());
  EVP_DigestFinal_ex(context.get(), digest.data(), nullptr);
  return digest;
}

int64_t HashOf(const BlockDigest& digest) {
  uint64_t bits = 0;
  for (size_t i = 0; i < sizeof(bits); ++i) bits = bits << 8 | digest[i];
  return static_cast<int64_t>(bits);
}

void BlockLog::Stored(std::span<const TokenId> tokens, int32_t begin, const BlockDigest* before,
                      std::vector<BlockDigest>* digests) {
  const auto size = static_cast<int32_t>(tokens.size());
  int32_t from = begin / kBlockTokens * kBlockTokens;
  if (from + kBlockTokens > size) return;
  KvEvent event;
  event.kind = KvEvent::Kind::kStored;
  if (before != nullptr) event.parent = HashOf(*before);
  BlockDigest last;
  for (; from + kBlockTokens <= size; from += kBlockTokens) {
    const auto block = tokens.subspan(static_cast<size_t>(from), kBlockTokens);
    last = DigestOf(before, block);
    before = &last;
    digests->push_back(last);
    event.blocks.push_back(
        {.hash = HashOf(last), .tokens = {block.begin(), block.end()}, .lora_id = {}});
  }
  events_.push_back(std::move(event));
}

void BlockLog::Removed(std::span<const BlockDigest> digests) {
  if (digests.empty()) return;
  if (events_.empty() || events_.back().kind != KvEvent::Kind::kRemoved) {
    events_.emplace_back().kind = KvEvent::Kind::kRemoved;
  }
  // The end of a prefix goes first.
  for (size_t i = digests.size(); i-- > 0;) events_.back().removed.push_back(HashOf(digests[i]));
}

void BlockLog::Cleared() {
  events_.clear();
  events_.emplace_back().kind = KvEvent::Kind::kCleared;
}

void BlockLog::Deliver(KvEventHub* hub) {
  if (events_.empty()) return;
  KvEventBatch batch;
  batch.timestamp = UnixTime();
  batch.events = std::exchange(events_, {});
  hub->Publish(std::move(batch));
}

}  // namespace portico::llama
