#include "tokenizer/fused/byte_level_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "text/utf8.h"
#include "tokenizer/cache/piece_cache.h"
#include "tokenizer/fused/id_sink.h"
#include "tokenizer/fused/place_sink.h"
#include "tokenizer/split/byte_level_scanners.h"

namespace portico::tokenizer {
namespace {

using Kind = ByteLevelPlan::Kind;

constexpr uint64_t kHighBits = 0x8080808080808080u;

bool IsSpaceAt(const CharClasses& classes, const char* p) {
  return (ClassAt(classes, p).char_class & kSpace) != 0;
}

// Whether the pieces in front of `p`, which is the beginning of one, are the same whatever comes kBehind bytes behind
// it: no run of white space, letters, marks or numbers goes across it. `begin` < p.
bool IsFirmBorder(const CharClasses& classes, const char* begin, const char* p) {
  const char* before = p - 1;
  while (before > begin && IsTailByte(*before)) --before;
  if (IsSpaceAt(classes, before)) return false;
  if (*p == ' ') return !IsSpaceAt(classes, p + 1);
  return *p != '\'' && (ClassAt(classes, p).char_class & (kLetter | kMark | kNumber | kSpace)) == 0;
}

// Whether a piece is worth a look for borders, by its first character that is not ASCII: the scripts from Thai on, most of
// which are written without spaces. The words of the others are short, and come again as they are.
bool MayHaveParts(const char* not_ascii) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(not_ascii[i]); };
  return byte(0) > 0xE0 || (byte(0) == 0xE0 && byte(1) >= 0xB8);
}

// The first byte that is not ASCII of the piece of that key at `p`, which has one.
const char* FirstNotAscii(const char* p, const PieceKey& key) {
  uint64_t low = key.low & kHighBits;
  return p + (low != 0 ? std::countr_zero(low) : 64 + std::countr_zero(key.high & kHighBits)) / 8;
}

// The same of a piece of at least eight bytes; null where there is none.
const char* FirstNotAscii(const char* p, const char* q) {
  for (;; p = std::min(p + 8, q - 8)) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    if ((word & kHighBits) != 0) return p + std::countr_zero(word & kHighBits) / 8;
    if (q - p == 8) return nullptr;
  }
}

// The pieces of a stretch, before they are looked up.
class PendingPieces {
 public:
  static constexpr size_t kMost = 64;

  PendingPieces(const PieceMerger& merger, PieceCache* cache, const char* end, IdSink* out)
      : merger_(merger), words_(merger.words()), cache_(cache), end_(end), out_(out) {}

  // Nothing of a new stretch is looked up yet.
  void BeginStretch() { untouched_ = true; }
  bool untouched() const { return untouched_; }

  // The next piece.
  void Add(const char* p, const char* q) {
    auto length = static_cast<size_t>(q - p);
    if (length > PieceCache::kShortBytes) return AddLonger(p, length);
    PieceKey key = PieceKey::Of(p, length, static_cast<size_t>(end_ - p));
    if (((key.low | key.high) & kHighBits) != 0 && length > kOneChar &&
        MayHaveParts(FirstNotAscii(p, key))) {
      return AddParts(p, q);
    }
    AddShort(p, length, key);
  }

  void Drop() { count_ = 0; }

  void Resolve() {
    size_t of_several = cache_->first() ? ResolveAll<true>() : ResolveAll<false>();
    cache_->set_first(of_several * 5 > count_ * 2);
    count_ = 0;
  }

 private:
  struct Pending {
    PieceKey key;
    uint64_t hash;  // the key's
    const char* text;
    size_t length;
  };

  static constexpr size_t kOneChar = 4;

  Pending* Next(const char* p, size_t length) {
    if (count_ == kMost) {
      Resolve();
      untouched_ = false;
    }
    Pending* piece = &pending_[count_++];
    piece->text = p;
    piece->length = length;
    return piece;
  }
  [[gnu::always_inline]] void AddShort(const char* p, size_t length, const PieceKey& key) {
    Pending* piece = Next(p, length);
    piece->key = key;
    piece->hash = key.Hash();
    if (WordTable::MayHave(key, length)) words_.Prefetch(words_.LineOf(piece->hash));
    cache_->PrefetchShort(piece->hash);
  }
  void AddLonger(const char* p, size_t length) {
    const char* not_ascii = FirstNotAscii(p, p + length);
    if (not_ascii != nullptr && MayHaveParts(not_ascii)) {
      AddParts(p, p + length);
    } else {
      AddWhole(p, length);
    }
  }
  void AddWhole(const char* p, size_t length) {
    Next(p, length);
    if (length <= PieceCache::kMediumBytes) cache_->Prefetch(PieceCache::MediumKeyOf({p, length}));
  }
  // The parts that are merged each by itself (piece_parts.h).
  [[gnu::noinline]] void AddParts(const char* p, const char* q) {
    while (p < q) {
      const char* part_end = merger_.parts().NextEnd(p, q);
      auto length = static_cast<size_t>(part_end - p);
      if (length > PieceCache::kShortBytes) {
        AddWhole(p, length);
      } else {
        AddShort(p, length, PieceKey::Of(p, length, static_cast<size_t>(end_ - p)));
      }
      p = part_end;
    }
  }

  // Returns how many of the pieces are several tokens. `kCacheFirst`: whether the cache is asked before the table of
  // words, and is given the words. Where nearly all pieces are words that costs more, but where many are not, the
  // processor cannot guess which of the two tables has the next one.
  template <bool kCacheFirst>
  [[gnu::always_inline]] size_t ResolveAll() {
    size_t of_several = 0;
    for (size_t i = 0; i < count_; ++i) {
      TokenId* begin = out_->Room((count_ - i) * PieceCache::kShortIds);
      TokenId* to = begin;
      const PieceCache::Short* hit = nullptr;
      while (i < count_ && ResolveShort<kCacheFirst>(pending_[i], &hit, &to, &of_several)) ++i;
      out_->Filled(static_cast<size_t>(to - begin));
      if (i == count_) break;
      ResolveOther(pending_[i], MayBeMedium(pending_[i], hit));
      ++of_several;
    }
    return of_several;
  }

  // Writes the ids of a piece that the tables of short ones tell, with room for kShortIds of them. Else false; `*hit` is
  // then what the cache says.
  template <bool kCacheFirst>
  [[gnu::always_inline]] bool ResolveShort(const Pending& piece, const PieceCache::Short** hit,
                                           TokenId** to, size_t* of_several) {
    if (piece.length > PieceCache::kShortBytes) [[unlikely]]
      return false;
    if (!kCacheFirst && ResolveWord(piece, to)) [[likely]]
      return true;
    *hit = cache_->FindShort(piece.key, piece.hash);
    if (*hit == nullptr) {
      if (!kCacheFirst || !ResolveWord(piece, to)) return false;
      cache_->AddShort(piece.key, piece.hash, *to - 1, 1);
      return true;
    }
    if ((*hit)->count == PieceCache::kInMedium) return false;
    std::memcpy(*to, (*hit)->ids, sizeof(*hit)->ids);
    *to += (*hit)->count;
    *of_several += (*hit)->count > 1;
    return true;
  }
  [[gnu::always_inline]] bool ResolveWord(const Pending& piece, TokenId** to) const {
    if (!WordTable::MayHave(piece.key, piece.length)) return false;
    TokenId id = words_.Find(piece.key, words_.LineOf(piece.hash));
    if (id < 0) return false;
    *(*to)++ = id;
    return true;
  }
  static bool MayBeMedium(const Pending& piece, const PieceCache::Short* hit) {
    return piece.length > PieceCache::kShortBytes || hit != nullptr;
  }

  // Of a piece that the tables of short ones do not tell; `may_be_medium`: it may be in the second table.
  [[gnu::noinline]] void ResolveOther(const Pending& piece, bool may_be_medium) {
    std::string_view text(piece.text, piece.length);
    if (text.size() > PieceCache::kMediumBytes) return ResolveLong(text);
    PieceCache::MediumKey key = PieceCache::MediumKeyOf(text);
    const PieceCache::Medium* hit = may_be_medium ? cache_->FindMedium(key) : nullptr;
    if (hit != nullptr) {
      out_->Append(hit->ids, hit->count);
      return;
    }
    TokenId* ids = out_->Room(text.size());
    size_t count = merger_.Encode(text, ids);
    out_->Filled(count);
    bool is_short = text.size() <= PieceCache::kShortBytes;
    if (is_short && count <= PieceCache::kShortIds) {
      cache_->AddShort(piece.key, piece.hash, ids, count);
    } else if (count <= PieceCache::kMediumIds) {
      cache_->AddMedium(key, ids, count);
      if (is_short) cache_->AddShortInMedium(piece.key, piece.hash);
    }
  }

  void ResolveLong(std::string_view text) {
    if (text.size() > PieceCache::kLongBytes) {
      out_->Filled(merger_.Encode(text, out_->Room(text.size())));
      return;
    }
    uint64_t hash = HashBytes(text);
    size_t count = 0;
    if (const TokenId* hit = cache_->FindLong(text, hash, &count)) {
      out_->Append(hit, count);
      return;
    }
    TokenId* ids = out_->Room(text.size());
    count = merger_.Encode(text, ids);
    out_->Filled(count);
    cache_->AddLong(text, hash, ids, count);
  }

  const PieceMerger& merger_;
  const WordTable& words_;
  PieceCache* cache_;
  const char* end_;
  IdSink* out_;
  size_t count_ = 0;
  bool untouched_ = true;
  Pending pending_[kMost];
};

}  // namespace

std::unique_ptr<const ByteLevelEncoder> ByteLevelEncoder::Make(
    const Bpe& model, ByteLevelPlan plan, std::unique_ptr<const PieceMerger> merger) {
  if (plan.kind == Kind::kNone) return nullptr;
  if (!merger) merger = PieceMerger::Make(model);
  if (!merger) return nullptr;
  return std::unique_ptr<const ByteLevelEncoder>(new ByteLevelEncoder(std::move(merger), plan));
}

ByteLevelEncoder::ByteLevelEncoder(std::unique_ptr<const PieceMerger> merger, ByteLevelPlan plan)
    : plan_(plan), merger_(std::move(merger)) {}

template <typename Scanner, typename Places>
void ByteLevelEncoder::EncodeWith(Scanner scanner, std::string_view text, std::vector<TokenId>* ids,
                                  Places* places) const {
  const CharClasses& classes = CharClasses::Get();
  PieceCache* cache = caches_.OfThread();
  TextCache* texts = cache->texts();
  const char* p = text.data();
  const char* end = p + text.size();
  IdSink out(ids, text.size() / 4 + PendingPieces::kMost * PieceCache::kShortIds);
  PendingPieces pieces(*merger_, cache, end, &out);
  [[maybe_unused]] std::array<const char*, Places::kWanted ? TextCache::kMost : 0> piece_ends;
  [[maybe_unused]] size_t piece_count = 0;  // of the stretch
  // Looking for a stretch waits for memory. While they are found one after the other that is all there is to do;
  // else the pieces of the stretch are cut in the meantime, in vain where it is found after all.
  bool expected = true;
  while (p < end) {
    const char* begin = p;
    auto readable = static_cast<size_t>(end - p);
    bool keep = readable >= TextCache::kReadable;
    const size_t least = TextCache::LeastOf(readable);
    uint64_t hash = 0;
    auto copied = [&] {
      TextCache::Found found = texts->Find(begin, readable, hash);
      expected = found.bytes > 0 && places->Copy(begin, found);
      if (!expected) return false;
      out.Append(found.ids.data(), found.ids.size());
      p = begin + found.bytes;
      return true;
    };
    if (keep) {
      hash = TextCache::HashOf(p);
      texts->Prefetch(hash);
      if (expected && copied()) continue;
    }
    size_t first = out.size();
    size_t length = 0;
    pieces.BeginStretch();
    if constexpr (Places::kWanted) piece_count = 0;
    do {
      const char* q = scanner.Next(p, end);
      pieces.Add(p, q);
      if constexpr (Places::kWanted) piece_ends[piece_count++] = q;
      p = q;
      length = static_cast<size_t>(p - begin);
    } while (p < end && length < TextCache::kMost &&
             (length < least || readable < length + TextCache::kBehind ||
              !IsFirmBorder(classes, begin, p)));
    if (keep && pieces.untouched() && copied()) {
      pieces.Drop();
      continue;
    }
    pieces.Resolve();
    out.Foresee(static_cast<size_t>(p - text.data()), static_cast<size_t>(end - p));
    keep = keep && TextCache::MayStore(length, readable - length) && texts->Seen(hash);
    const auto mark = places->BeginStretch(begin);
    if constexpr (Places::kWanted) {
      Place(begin, p, out.From(first), std::span(piece_ends).first(piece_count),
            keep || places->WantsWords(), places);
      places->EndStretchOfParts(begin, p);
    }
    if (keep) {
      texts->Store(begin, length, readable - length, hash, out.From(first),
                   places->Pack(mark, length));
    }
  }
}

std::string_view ByteLevelEncoder::Prefixed(std::string_view text, std::string* copy) const {
  if (!TakesPrefix(text)) return text;
  *copy = " ";
  copy->append(text);
  return *copy;
}

void ByteLevelEncoder::Encode(std::string_view text, std::vector<TokenId>* ids,
                              PlaceSink* places) const {
  std::string prefixed;
  const std::string_view whole = Prefixed(text, &prefixed);
  WithScanner(plan_.kind, [&](auto scanner) {
    if (places == nullptr) {
      NoPlaces none;
      return EncodeWith(scanner, whole, ids, &none);
    }
    if (whole.size() == text.size()) return EncodeWith(scanner, text, ids, places);
    places->BeginPrefixed(whole.data(), text.data());
    EncodeWith(scanner, whole, ids, places);
    places->EndPrefixed();
  });
}

}  // namespace portico::tokenizer
