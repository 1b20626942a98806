#include "tokenizer/merge/whole_tokens.h"

#include <algorithm>
#include <cstdint>

namespace portico::tokenizer {
namespace {

// How a token is made.
struct Origin {
  static constexpr int32_t kUnknown = -2;
  static constexpr int32_t kByte = -1;  // there from the beginning

  int32_t rank = kUnknown;
  TokenId left = -1;
  TokenId right = -1;
};

class Origins {
 public:
  Origins(const PairMerges& pairs, const ByteTokens& tokens)
      : pairs_(pairs), tokens_(tokens), of_(static_cast<size_t>(tokens.limit())) {}

  void AddByte(TokenId id) { Of(id).rank = Origin::kByte; }

  // Merges must come by their ranks.
  void Add(TokenId left, TokenId right, int32_t rank, TokenId id) {
    bool sound = !IsWhole(id) && IsWhole(left) && IsWhole(right) &&
                 std::max(Of(left).rank, Of(right).rank) < rank &&
                 tokens_.LengthOf(left) + tokens_.LengthOf(right) == tokens_.LengthOf(id);
    if (sound && StayApart(left, right, rank)) Of(id) = {rank, left, right};
  }

  // Asks for the memory that Add() looks at first.
  void Prefetch(TokenId left, TokenId right, TokenId id) const {
    __builtin_prefetch(&Of(id));
    __builtin_prefetch(&Of(left));
    __builtin_prefetch(&Of(right));
  }

  bool IsWhole(TokenId id) const { return Of(id).rank != Origin::kUnknown; }

 private:
  // Whether the two tokens are both there, and nothing has merged across their border, at `rank`.
  bool StayApart(TokenId left, TokenId right, int32_t rank) const {
    const Origin* x = &Of(left);
    const Origin* y = &Of(right);
    int32_t taken_x = rank;
    int32_t taken_y = rank;
    while (x->rank >= 0 || y->rank >= 0) {
      // One step back in time.
      if (x->rank > y->rank) {
        taken_x = x->rank;
        left = x->right;
        x = &Of(left);
      } else {
        taken_y = y->rank;
        right = y->left;
        y = &Of(right);
      }
      PairMerges::Pair pair = pairs_.Get(left, right);
      if (pair.rank == PairMerges::kNone) continue;
      auto merged = static_cast<int32_t>(pair.rank);
      if (merged < taken_x && merged <= taken_y) return false;
    }
    return true;
  }

  const Origin& Of(TokenId id) const { return of_[static_cast<size_t>(id)]; }
  Origin& Of(TokenId id) { return of_[static_cast<size_t>(id)]; }

  const PairMerges& pairs_;
  const ByteTokens& tokens_;
  std::vector<Origin> of_;
};

struct Step {
  TokenId left;
  TokenId right;
  TokenId id;
  uint32_t next;  // of the same rank
};
constexpr uint32_t kNoStep = UINT32_MAX;

}  // namespace

std::vector<bool> WholeTokens(const PairMerges& pairs, const ByteTokens& tokens,
                              const TokenId* byte_ids) {
  std::vector<Step> steps;
  steps.reserve(pairs.room());
  std::vector<uint32_t> of_rank;  // the first step of a rank
  pairs.ForEach([&](TokenId left, TokenId right, Merge merge) {
    if (merge.rank >= of_rank.size()) of_rank.resize(merge.rank + size_t{1}, kNoStep);
    steps.push_back({left, right, merge.id, of_rank[merge.rank]});
    of_rank[merge.rank] = static_cast<uint32_t>(steps.size() - 1);
  });
  Origins origins(pairs, tokens);
  for (size_t b = 0; b < 256; ++b) origins.AddByte(byte_ids[b]);
  constexpr size_t kAhead = 8;
  auto first_of = [&](size_t rank) { return rank < of_rank.size() ? of_rank[rank] : kNoStep; };
  for (size_t rank = 0; rank < of_rank.size(); ++rank) {
    if (uint32_t far = first_of(rank + 2 * kAhead); far != kNoStep) __builtin_prefetch(&steps[far]);
    if (uint32_t near = first_of(rank + kAhead); near != kNoStep) {
      origins.Prefetch(steps[near].left, steps[near].right, steps[near].id);
    }
    for (uint32_t at = of_rank[rank]; at != kNoStep; at = steps[at].next) {
      const Step& s = steps[at];
      origins.Add(s.left, s.right, static_cast<int32_t>(rank), s.id);
    }
  }
  std::vector<bool> out(static_cast<size_t>(tokens.limit()));
  for (TokenId id = 0; id < tokens.limit(); ++id)
    out[static_cast<size_t>(id)] = origins.IsWhole(id);
  return out;
}

}  // namespace portico::tokenizer
