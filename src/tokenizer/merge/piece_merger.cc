#include "tokenizer/merge/piece_merger.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "text/utf8.h"
#include "tokenizer/load/run_beside.h"
#include "tokenizer/merge/whole_tokens.h"
#include "tokenizer/model/byte_level.h"

namespace portico::tokenizer {
namespace {

// A piece of up to so many symbols is merged in place, with a bit for each symbol that is still there and a key for
// each pair: its rank, then where it is. The least key is the next merge, and finding it is a few vector instructions.
constexpr size_t kFew = 64;
constexpr int kPlaceBits = 6;
constexpr int32_t kNoMerge = int32_t{PairMerges::kNone} << kPlaceBits;  // and all above it
constexpr size_t kLane = 8;  // keys are padded to a multiple of it
constexpr size_t kVectorKeys = 2 * kLane;
constexpr size_t kBytePairs = size_t{256} * 256;

}  // namespace

class PieceMerger::Keys {
 public:
  void Set(size_t place, PairMerges::Pair pair) {
    keys_[place] = static_cast<int32_t>(pair.rank << kPlaceBits | static_cast<uint32_t>(place));
    merged_[place] = pair.merged;
  }
  void SetDead(size_t place) { keys_[place] = INT32_MAX; }
  // Pairs from `count` on are dead, up to a multiple of kLane and at least kVectorKeys.
  void Pad(size_t count) {
    padded_ = std::max(kVectorKeys, (count + kLane - 1) / kLane * kLane);
    for (size_t i = count; i < padded_; ++i) SetDead(i);
  }
  int32_t Least() const {
    int32_t best = INT32_MAX;
    for (size_t i = 0; i < padded_; ++i) best = std::min(best, keys_[i]);
    return best;
  }
  TokenId MergedAt(size_t place) const { return merged_[place]; }
  const int32_t* keys() const { return keys_; }
  const TokenId* merged() const { return merged_; }

 private:
  int32_t keys_[kFew];
  TokenId merged_[kFew];
  size_t padded_ = 0;
};

namespace {

// The same for up to kVectorKeys pairs, in registers. A vector load waits until the stores that have just changed a part
// of what it reads are done, which would make every merge wait for the one before it.
class VectorKeys {
 public:
  // Those of `keys` and `merged`, both of kVectorKeys.
  VectorKeys(const int32_t* keys, const TokenId* merged) {
    std::memcpy(&low_, keys, sizeof(low_));
    std::memcpy(&high_, keys + kLane, sizeof(high_));
    std::memcpy(merged_, merged, sizeof(merged_));
  }
  void Set(size_t place, PairMerges::Pair pair) {
    Put(place, static_cast<int32_t>(pair.rank << kPlaceBits | static_cast<uint32_t>(place)));
    merged_[place] = pair.merged;
  }
  void SetDead(size_t place) { Put(place, INT32_MAX); }
  int32_t Least() const {
    Vector least = low_ < high_ ? low_ : high_;
    Vector other = __builtin_shufflevector(least, least, 4, 5, 6, 7, 0, 1, 2, 3);
    least = least < other ? least : other;
    other = __builtin_shufflevector(least, least, 2, 3, 0, 1, 6, 7, 4, 5);
    least = least < other ? least : other;
    return std::min(least[0], least[1]);
  }
  TokenId MergedAt(size_t place) const { return merged_[place]; }

 private:
  using Vector = int32_t __attribute__((vector_size(kLane * sizeof(int32_t))));
  static constexpr Vector kPlaces = {0, 1, 2, 3, 4, 5, 6, 7};

  void Put(size_t place, int32_t key) {
    Vector at = kPlaces - static_cast<int32_t>(place);
    low_ = at == 0 ? Vector{} + key : low_;
    high_ = at == -static_cast<int32_t>(kLane) ? Vector{} + key : high_;
  }

  Vector low_;
  Vector high_;
  TokenId merged_[kVectorKeys];
};

bool AllAscii(std::string_view piece) {
  const char* p = piece.data();
  size_t n = piece.size();
  uint64_t bits = 0;
  for (; n >= 8; p += 8, n -= 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    bits |= word;
  }
  for (; n > 0; ++p, --n) bits |= static_cast<unsigned char>(*p);
  return (bits & 0x8080808080808080u) == 0;
}

// The tokens of the 256 bytes, fit for PairMerges; false where the model is not one that merging bytes equals.
bool FindBytes(const Bpe& model, TokenId* byte_ids) {
  const BpeOptions& o = model.options();
  if (o.unk_token || o.byte_fallback || !o.continuing_subword_prefix.empty() ||
      !o.end_of_word_suffix.empty()) {
    return false;
  }
  for (size_t b = 0; b < 256; ++b) {
    std::string spelling;
    AppendUtf8(kByteLevelChars[b], &spelling);
    std::optional<TokenId> id = model.vocabulary().Find(spelling);
    if (!id || *id >= PairMerges::kIdLimit) return false;
    byte_ids[b] = *id;
  }
  return true;
}

}  // namespace

std::unique_ptr<const PieceMerger> PieceMerger::Make(const Bpe& model) {
  TokenId byte_ids[256];
  if (!FindBytes(model, byte_ids)) return nullptr;
  std::unique_ptr<PieceMerger> merger;
  constexpr size_t kManyTokens = size_t{1} << 15;
  const bool many = model.vocabulary().size() >= kManyTokens;
  RunBeside(
      many, [&] { model.pairs(); },
      [&] { merger.reset(new PieceMerger(model, ByteTokens(model.vocabulary()))); });
  if (model.pairs() == nullptr) return nullptr;
  merger->pairs_ = model.pairs();
  std::copy_n(byte_ids, 256, merger->byte_ids_);
  merger->MakeBytePairs();
  const std::vector<TokenEdges> edges = EdgesOf(merger->tokens_);
  std::vector<bool> whole;
  RunBeside(
      many,
      [&] {
        merger->atoms_ =
            std::make_unique<CharAtoms>(model, merger->tokens_, edges, merger->byte_ids_);
      },
      [&] {
        whole = WholeTokens(*merger->pairs_, merger->tokens_, merger->byte_ids_);
        merger->MakeWords(whole);
      });
  merger->parts_ = std::make_unique<PieceParts>(model, merger->tokens_, edges, whole);
  return merger;
}

void PieceMerger::Save(CompiledWriter* out) const {
  tokens_.Save(out);
  out->Rows(byte_pairs_);
  atoms_->Save(out);
  words_->Save(out);
  parts_->Save(out);
}

std::unique_ptr<const PieceMerger> PieceMerger::Restore(const Bpe& model, std::string_view bytes) {
  TokenId byte_ids[256];
  if (!FindBytes(model, byte_ids)) return nullptr;
  CompiledReader in(bytes);
  TokenId limit = model.vocabulary().max_id() + 1;
  std::optional<ByteTokens> tokens = ByteTokens::Restore(&in, limit);
  if (!tokens) return nullptr;
  std::unique_ptr<PieceMerger> merger(new PieceMerger(model, *std::move(tokens)));
  std::copy_n(byte_ids, 256, merger->byte_ids_);
  merger->pairs_ = model.pairs();
  if (merger->pairs_ == nullptr || !in.Rows(&merger->byte_pairs_) ||
      merger->byte_pairs_.size() != kBytePairs ||
      !(merger->atoms_ = CharAtoms::Restore(&in, limit, merger->byte_ids_)) ||
      !(merger->words_ = WordTable::Restore(&in, limit)) ||
      !(merger->parts_ = PieceParts::Restore(&in)) || !in.AtEnd()) {
    return nullptr;
  }
  bool known = true;
  for (const PairMerges::Pair& pair : merger->byte_pairs_) {
    known &= pair.rank == PairMerges::kNone ||
             (pair.rank < PairMerges::kNone && pair.merged >= 0 && pair.merged < limit);
  }
  return known ? std::move(merger) : nullptr;
}

void PieceMerger::MakeBytePairs() {
  byte_pairs_.resize(kBytePairs);
  for (size_t i = 0; i < kBytePairs; ++i) {
    byte_pairs_.Edit(i) = pairs_->Get(byte_ids_[i >> 8], byte_ids_[i & 255]);
  }
}

void PieceMerger::MakeWords(const std::vector<bool>& whole) {
  if (model_.options().ignore_merges) {
    words_ = std::make_unique<WordTable>(
        tokens_, [&](TokenId id) { return tokens_.Find(tokens_.Of(id)) == id; });
    return;
  }
  words_ = std::make_unique<WordTable>(tokens_,
                                       [&](TokenId id) { return whole[static_cast<size_t>(id)]; });
}

size_t PieceMerger::Encode(std::string_view piece, TokenId* out) const {
  if (model_.options().ignore_merges) {
    if (TokenId id = tokens_.Find(piece); id >= 0) {
      out[0] = id;
      return 1;
    }
  }
  Keys keys;
  if (piece.size() <= kFew && AllAscii(piece)) {
    const auto* p = reinterpret_cast<const unsigned char*>(piece.data());
    size_t count = piece.size();
    for (size_t i = 0; i < count; ++i) out[i] = byte_ids_[p[i]];
    for (size_t i = 0; i + 1 < count; ++i) keys.Set(i, byte_pairs_[size_t{p[i]} << 8 | p[i + 1]]);
    return MergeFew(out, count, &keys);
  }
  size_t count = atoms_->Symbols(piece, out);
  if (count > kFew) return MergeMany(out, count);
  PairMerges::Place places[kFew];
  for (size_t i = 0; i + 1 < count; ++i) places[i] = pairs_->Locate(out[i], out[i + 1]);
  for (size_t i = 0; i + 1 < count; ++i) keys.Set(i, pairs_->Get(places[i]));
  return MergeFew(out, count, &keys);
}

namespace {

// Merges `ids`, `count` of them, in place, by the keys of their pairs. Returns how many are left.
template <typename Keys>
size_t MergeByKeys(const PairMerges& pairs, TokenId* ids, size_t count, Keys* keys) {
  uint64_t alive = ~uint64_t{0} >> (kFew - count);
  for (;;) {
    int32_t best = keys->Least();
    if (best >= kNoMerge) break;
    auto at = static_cast<size_t>(best) % kFew;
    uint64_t behind = alive & (~uint64_t{1} << at);
    auto next = static_cast<size_t>(std::countr_zero(behind));
    behind &= behind - 1;
    alive &= ~(uint64_t{1} << next);
    keys->SetDead(next);
    TokenId merged = keys->MergedAt(at);
    ids[at] = merged;
    keys->SetDead(at);
    // Where there is no symbol on a side, the place looked up is of no use and harmless.
    uint64_t before = alive & ((uint64_t{1} << at) - 1);
    size_t previous = before == 0 ? at : static_cast<size_t>(63 - std::countl_zero(before));
    size_t following = behind == 0 ? at : static_cast<size_t>(std::countr_zero(behind));
    PairMerges::Place left = pairs.Locate(ids[previous], merged);
    PairMerges::Place right = pairs.Locate(merged, ids[following]);
    if (before != 0) keys->Set(previous, pairs.Get(left));
    if (behind != 0) keys->Set(at, pairs.Get(right));
  }
  size_t kept = 0;
  for (; alive != 0; alive &= alive - 1) ids[kept++] = ids[std::countr_zero(alive)];
  return kept;
}

}  // namespace

size_t PieceMerger::MergeFew(TokenId* ids, size_t count, Keys* keys) const {
  keys->Pad(count - 1);
  if (count - 1 > kVectorKeys) return MergeByKeys(*pairs_, ids, count, keys);
  VectorKeys few(keys->keys(), keys->merged());
  return MergeByKeys(*pairs_, ids, count, &few);
}

size_t PieceMerger::MergeMany(TokenId* ids, size_t count) const {
  std::vector<Token> symbols;
  symbols.reserve(count);
  for (size_t i = 0; i < count; ++i) symbols.push_back({ids[i], 0, 0});
  model_.MergeAll(&symbols);
  for (size_t i = 0; i < symbols.size(); ++i) ids[i] = symbols[i].id;
  return symbols.size();
}

}  // namespace portico::tokenizer
