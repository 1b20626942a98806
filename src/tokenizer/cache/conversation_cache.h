// The ids of what a conversation has said already. A chat's prompt is the one before it with a turn more; a prompt is
// cut at its special tokens, and a part that was encoded before costs a hash, a comparison and a copy.
//
// A cut before a special token changes no id. Added tokens are found in the raw text, leftmost first and the longest,
// before anything else happens, and what lies between two of them is normalized, split and encoded by itself. So the
// parts before and after a token's first byte know of each other only through
//   - a token that takes the spaces around it: the token at the cut takes none to its left, and since it begins with
//     punctuation, none that belongs to the part before it is taken from it, nor it by an rstrip before;
//   - a token that must stand as a single word: the one at the cut need not, and punctuation ends a word as the
//     text's end does;
//   - a search in normalized text, or a "first" piece that gets a prefix: the part behind the cut begins with the
//     token itself, as it does in the whole text.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// Safe to use from many threads; none waits for another: what a busy part of the cache has is encoded anew.
class ConversationCache {
 public:
  static constexpr size_t kMaxBytes = size_t{64} << 20;
  // To keep the parts of a shorter text costs more than to encode them again.
  static constexpr size_t kLeastText = size_t{4} << 10;

  // At the bound the parts go that were not used for longest. Texts of less than `least_text` bytes are encoded whole.
  explicit ConversationCache(std::shared_ptr<const Tokenizer> tokenizer,
                             size_t max_bytes = kMaxBytes, size_t least_text = kLeastText);
  ~ConversationCache();

  // Appends the ids of a part of a text as Tokenizer::TryEncode(part, false, ids) does, or returns an error.
  using Encoder = absl::FunctionRef<Status(std::string_view part, std::vector<TokenId>* ids)>;

  // As Tokenizer::TryEncode(text, false, ids). Returns how many of the ids it had. What it has not is encoded by `encode`, one
  // part after the other; the first error ends that and is returned, and nothing is appended.
  StatusOr<size_t> Encode(std::string_view text, Encoder encode, std::vector<TokenId>* ids);
  StatusOr<size_t> Encode(std::string_view text, std::vector<TokenId>* ids);

  // Of parts and what keeps them.
  size_t bytes() const;
  uint64_t reused_tokens() const { return reused_tokens_.load(std::memory_order_relaxed); }

 private:
  struct Shard;
  static constexpr size_t kShards = 16;

  // Where `text` may be cut, the ends not included.
  std::vector<size_t> Cuts(std::string_view text) const;
  StatusOr<size_t> EncodePart(std::string_view part, Encoder encode, std::vector<TokenId>* ids);

  std::shared_ptr<const Tokenizer> tokenizer_;
  const size_t least_text_;
  bool has_cuts_ = false;  // the vocabulary has tokens that cut
  std::vector<std::unique_ptr<Shard>> shards_;
  std::atomic<uint64_t> reused_tokens_{0};
};

}  // namespace portico
