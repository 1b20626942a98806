#include "tokenizer/cache/conversation_cache.h"

#include <algorithm>
#include <cctype>
#include <list>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "text/utf8.h"
#include "tokenizer/cache/hash.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/split/added_tokens.h"

namespace portico {
namespace {

using tokenizer::AddedToken;
using tokenizer::AddedTokens;

// A part is at least as long; a lookup costs about as much as encoding a few dozen bytes.
constexpr size_t kLeastPart = 256;
// What an entry costs beside its text and ids.
constexpr size_t kEntryBytes = 160;

bool Cuts(const AddedToken& token) {
  return !token.content.empty() && !token.normalized && !token.single_word && !token.lstrip &&
         static_cast<unsigned char>(token.content[0]) < 0x80 && token.content[0] != '_' &&
         std::ispunct(static_cast<unsigned char>(token.content[0])) != 0;
}

}  // namespace

struct ConversationCache::Shard {
  struct Entry {
    uint64_t hash = 0;
    std::string text;
    std::vector<TokenId> ids;
    size_t bytes() const { return text.size() + ids.size() * sizeof(TokenId) + kEntryBytes; }
  };
  using Shared = std::shared_ptr<const Entry>;

  Mutex mutex;
  std::list<Shared> entries ABSL_GUARDED_BY(mutex);  // the last used first
  std::unordered_map<uint64_t, std::list<Shared>::iterator> by_hash ABSL_GUARDED_BY(mutex);
  std::atomic<size_t> bytes{0};
  size_t max_bytes = 0;

  Shared Find(uint64_t hash) {
    if (!mutex.TryLock()) return nullptr;
    const MutexLock lock(&mutex, std::adopt_lock);
    auto it = by_hash.find(hash);
    if (it == by_hash.end()) return nullptr;
    entries.splice(entries.begin(), entries, it->second);
    return entries.front();
  }

  void Add(Shared entry) {
    if (entry->bytes() > max_bytes) return;
    std::list<Shared> gone;  // freed after the lock
    if (!mutex.TryLock()) return;
    const MutexLock lock(&mutex, std::adopt_lock);
    if (auto it = by_hash.find(entry->hash); it != by_hash.end()) Remove(it->second, &gone);
    bytes += entry->bytes();
    entries.push_front(std::move(entry));
    by_hash[entries.front()->hash] = entries.begin();
    while (bytes > max_bytes) Remove(std::prev(entries.end()), &gone);
  }

  void Remove(std::list<Shared>::iterator at, std::list<Shared>* gone)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    bytes -= (*at)->bytes();
    by_hash.erase((*at)->hash);
    gone->splice(gone->end(), entries, at);
  }
};

ConversationCache::ConversationCache(std::shared_ptr<const Tokenizer> tokenizer, size_t max_bytes,
                                     size_t least_text)
    : tokenizer_(std::move(tokenizer)), least_text_(std::max(least_text, kLeastPart + 1)) {
  for (const auto& [id, entry] : tokenizer_->pipeline().added_tokens().entries()) {
    has_cuts_ = has_cuts_ || portico::Cuts(entry.token);
  }
  for (size_t i = 0; i < kShards; ++i) {
    shards_.push_back(std::make_unique<Shard>());
    shards_.back()->max_bytes = max_bytes / kShards;
  }
}

ConversationCache::~ConversationCache() = default;

size_t ConversationCache::bytes() const {
  size_t sum = 0;
  for (const auto& shard : shards_) sum += shard->bytes.load(std::memory_order_relaxed);
  return sum;
}

std::vector<size_t> ConversationCache::Cuts(std::string_view text) const {
  const AddedTokens& added = tokenizer_->pipeline().added_tokens();
  std::vector<size_t> cuts;
  size_t last = 0;
  const auto take = [&](const AddedTokens::Part& part) {
    if (!part.id || part.begin < last + kLeastPart) return;
    if (!portico::Cuts(added.entries().at(*part.id).token)) return;
    last = part.begin;
    cuts.push_back(last);
  };
  added.ForEachPart(text, /*normalized=*/false, /*parse_special=*/true, take);
  return cuts;
}

StatusOr<size_t> ConversationCache::EncodePart(std::string_view part, Encoder encode,
                                               std::vector<TokenId>* ids) {
  uint64_t hash = tokenizer::HashBytes(part);
  Shard& shard = *shards_[hash >> 32 & (kShards - 1)];
  if (Shard::Shared found = shard.Find(hash); found != nullptr && found->text == part) {
    ids->insert(ids->end(), found->ids.begin(), found->ids.end());
    return found->ids.size();
  }
  size_t before = ids->size();
  PORTICO_RETURN_IF_ERROR(encode(part, ids));
  if (part.size() > shard.max_bytes) return size_t{0};  // before it is copied
  auto entry = std::make_shared<Shard::Entry>();
  entry->hash = hash;
  entry->text = part;
  entry->ids.assign(ids->begin() + static_cast<ptrdiff_t>(before), ids->end());
  shard.Add(std::move(entry));
  return size_t{0};
}

StatusOr<size_t> ConversationCache::Encode(std::string_view text, std::vector<TokenId>* ids) {
  const auto encode = [this](std::string_view part, std::vector<TokenId>* to) {
    return tokenizer_->TryEncode(part, /*add_special_tokens=*/false, to);
  };
  return Encode(text, encode, ids);
}

StatusOr<size_t> ConversationCache::Encode(std::string_view text, Encoder encode,
                                           std::vector<TokenId>* ids) {
  size_t before = ids->size();
  std::vector<size_t> cuts;
  // Bytes that are no text are replaced by the tokenizer, which may move what lies behind them.
  if (has_cuts_ && text.size() >= least_text_ && IsValidUtf8(text)) cuts = Cuts(text);
  size_t at = 0;
  size_t reused = 0;
  Status status;
  for (size_t cut : cuts) {
    StatusOr<size_t> part = EncodePart(text.substr(at, cut - at), encode, ids);
    status = part.status();
    if (!status.ok()) break;
    reused += *part;
    at = cut;
  }
  // The last part is what the next prompt will have more of.
  if (status.ok()) status = encode(text.substr(at), ids);
  if (!status.ok()) {
    ids->resize(before);
    return status;
  }
  reused_tokens_.fetch_add(reused, std::memory_order_relaxed);
  return reused;
}

}  // namespace portico
