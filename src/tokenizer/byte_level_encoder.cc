#include "tokenizer/byte_level_encoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "tokenizer/byte_level_scanners.h"
#include "tokenizer/piece_cache.h"

namespace portico::tokenizer {
namespace {

using Kind = ByteLevelPlan::Kind;

constexpr std::string_view kFirstText =
    "The quick brown fox jumps over the lazy dog, and then it's 12:45; what else? \n\n"
    "def f(x):\n    return {\"key\": [x + 1]}  # \xE4\xB8\xAD\xE6\x96\x87\xE3\x81\x82 \xC3\xA9\n";

// Appends to a vector with room to spare, so that an id costs a store.
class Ids {
 public:
  Ids(std::vector<TokenId>* ids, size_t expected) : ids_(ids), size_(ids->size()) {
    ids_->resize(size_ + expected);
  }
  ~Ids() { ids_->resize(size_); }
  Ids(const Ids&) = delete;
  Ids& operator=(const Ids&) = delete;

  size_t size() const { return size_; }
  std::span<const TokenId> From(size_t at) const { return {ids_->data() + at, size_ - at}; }
  // Room for `count` more, to be filled and then counted by Filled().
  TokenId* Room(size_t count) {
    if (ids_->size() - size_ < count) ids_->resize(size_ + std::max(count, size_ / 2 + 1024));
    return ids_->data() + size_;
  }
  void Filled(size_t count) { size_ += count; }
  void Append(const TokenId* from, size_t count) {
    if (count == 0) return;  // `from` may then be null
    std::memcpy(Room(count), from, count * sizeof(TokenId));
    size_ += count;
  }

 private:
  std::vector<TokenId>* ids_;
  size_t size_;
};

bool IsSpaceAt(const CharClasses& classes, const char* p) {
  return (ClassAt(classes, p).char_class & kSpace) != 0;
}

// Whether the pieces in front of `p`, which is the beginning of one, are the same whatever comes kBehind bytes behind
// it: no run of white space, letters, marks or numbers goes across it. `begin` < p.
bool IsFirmBorder(const CharClasses& classes, const char* begin, const char* p) {
  const char* before = p - 1;
  while (before > begin && (static_cast<unsigned char>(*before) & 0xC0) == 0x80) --before;
  if (IsSpaceAt(classes, before)) return false;
  if (*p == ' ') return !IsSpaceAt(classes, p + 1);
  return *p != '\'' && (ClassAt(classes, p).char_class & (kLetter | kMark | kNumber | kSpace)) == 0;
}

// The pieces of a stretch, before they are looked up.
class PendingPieces {
 public:
  static constexpr size_t kMost = 64;

  PendingPieces(const PieceMerger& merger, PieceCache* cache, const char* end, Ids* out)
      : merger_(merger), words_(merger.words()), cache_(cache), end_(end), out_(out) {}

  bool full() const { return count_ == kMost; }

  void Add(const char* p, const char* q) {
    Pending& piece = pending_[count_++];
    auto length = static_cast<size_t>(q - p);
    piece.text = p;
    piece.length = length;
    if (length > PieceCache::kShortBytes) {
      if (length <= PieceCache::kMediumBytes)
        cache_->Prefetch(PieceCache::MediumKeyOf({p, length}));
      return;
    }
    piece.key = PieceKey::Of(p, length, static_cast<size_t>(end_ - p));
    piece.hash = piece.key.Hash();
    if (MayBeWord(piece)) words_.Prefetch(words_.LineOf(piece.hash));
    cache_->PrefetchShort(piece.hash);
  }

  void Drop() { count_ = 0; }

  void Resolve() {
    for (size_t i = 0; i < count_; ++i) {
      TokenId* begin = out_->Room((count_ - i) * PieceCache::kShortIds);
      TokenId* to = begin;
      const PieceCache::Short* hit = nullptr;
      while (i < count_ && ResolveShort(pending_[i], &hit, &to)) ++i;
      out_->Filled(static_cast<size_t>(to - begin));
      if (i < count_) ResolveOther(pending_[i], MayBeMedium(pending_[i], hit));
    }
    count_ = 0;
  }

  // The same, where `done(first, p, q)` is called for each piece: its ids are those of the output from `first` on.
  template <typename Done>
  void Resolve(Done done) {
    for (size_t i = 0; i < count_; ++i) {
      size_t first = out_->size();
      ResolveOne(pending_[i]);
      done(first, pending_[i].text, pending_[i].text + pending_[i].length);
    }
    count_ = 0;
  }

 private:
  struct Pending {
    PieceKey key;
    uint64_t hash;  // the key's
    const char* text;
    size_t length;
  };

  // Whether the piece is looked for in the table of words. Of scripts beyond ASCII few pieces are one token, and those
  // that are lie in the cache like the others.
  static bool MayBeWord(const Pending& piece) {
    return piece.length <= WordTable::kMostBytes && (piece.key.low & 0x8080) == 0;
  }

  void ResolveOne(const Pending& piece) {
    TokenId* begin = out_->Room(PieceCache::kShortIds);
    TokenId* to = begin;
    const PieceCache::Short* hit = nullptr;
    if (!ResolveShort(piece, &hit, &to)) return ResolveOther(piece, MayBeMedium(piece, hit));
    out_->Filled(static_cast<size_t>(to - begin));
  }

  // Writes the ids of a piece that the tables of short ones tell, with room for kShortIds of them. Else false; `*hit` is
  // then what the cache says.
  [[gnu::always_inline]] bool ResolveShort(const Pending& piece, const PieceCache::Short** hit,
                                           TokenId** to) const {
    if (piece.length > PieceCache::kShortBytes) [[unlikely]]
      return false;
    if (MayBeWord(piece)) [[likely]] {
      TokenId id = words_.Find(piece.key, words_.LineOf(piece.hash));
      if (id >= 0) [[likely]] {
        *(*to)++ = id;
        return true;
      }
    }
    *hit = cache_->FindShort(piece.key, piece.hash);
    if (*hit == nullptr || (*hit)->count == PieceCache::kInMedium) return false;
    std::memcpy(*to, (*hit)->ids, sizeof(*hit)->ids);
    *to += (*hit)->count;
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
  Ids* out_;
  size_t count_ = 0;
  Pending pending_[kMost];
};

}  // namespace

std::unique_ptr<const ByteLevelEncoder> ByteLevelEncoder::Make(
    const Bpe& model, ByteLevelPlan plan, std::unique_ptr<const PieceMerger> merger) {
  if (plan.kind == Kind::kNone) return nullptr;
  if (!merger) merger = PieceMerger::Make(model);
  if (!merger) return nullptr;
  std::unique_ptr<const ByteLevelEncoder> encoder(new ByteLevelEncoder(std::move(merger), plan));
  // The classes of characters and this thread's caches are made now, so that the first text does not wait for them.
  std::vector<TokenId> ids;
  encoder->Encode(kFirstText, &ids);
  return encoder;
}

ByteLevelEncoder::ByteLevelEncoder(std::unique_ptr<const PieceMerger> merger, ByteLevelPlan plan)
    : plan_(plan), merger_(std::move(merger)) {
  static std::atomic<uint64_t> next{1};
  number_ = next.fetch_add(1, std::memory_order_relaxed);
}

template <typename Scanner>
void ByteLevelEncoder::EncodeWith(Scanner scanner, std::string_view text,
                                  std::vector<TokenId>* ids) const {
  const CharClasses& classes = CharClasses::Get();
  PieceCache* cache = PieceCache::OfThread(number_);
  TextCache* texts = cache->texts();
  const char* p = text.data();
  const char* end = p + text.size();
  Ids out(ids, text.size() / 4 + PendingPieces::kMost * PieceCache::kShortIds);
  PendingPieces pieces(*merger_, cache, end, &out);
  // Looking for a stretch waits for memory. While they are found one after the other that is all there is to do;
  // else the pieces of the stretch are cut in the meantime, in vain where it is found after all.
  bool expected = true;
  while (p < end) {
    const char* begin = p;
    auto readable = static_cast<size_t>(end - p);
    bool keep = readable >= TextCache::kLeast + TextCache::kBehind;
    uint64_t hash = 0;
    auto copied = [&] {
      TextCache::Found found = texts->Find(begin, readable, hash);
      out.Append(found.ids.data(), found.ids.size());
      expected = found.bytes > 0;
      if (expected) p = begin + found.bytes;
      return expected;
    };
    if (keep) {
      hash = TextCache::HashOf(p);
      texts->Prefetch(hash);
      if (expected && copied()) continue;
    }
    size_t first = out.size();
    size_t length = 0;
    bool whole = true;  // nothing of the stretch is looked up yet
    do {
      const char* q = scanner.Next(p, end);
      if (pieces.full()) {
        pieces.Resolve();
        whole = false;
      }
      pieces.Add(p, q);
      p = q;
      length = static_cast<size_t>(p - begin);
    } while (p < end && length < TextCache::kMost &&
             (length < TextCache::kLeast || readable < length + TextCache::kBehind ||
              !IsFirmBorder(classes, begin, p)));
    if (keep && whole && copied()) {
      pieces.Drop();
      continue;
    }
    pieces.Resolve();
    keep = keep && readable >= length + TextCache::kBehind && length < TextCache::kMost;
    if (keep) texts->Note(begin, length, hash, out.From(first));
  }
}

template <typename Scanner>
void ByteLevelEncoder::EncodeTokensWith(Scanner scanner, std::string_view text,
                                        std::vector<PlacedToken>* out, uint32_t* words) const {
  const char* begin = text.data();
  const char* end = begin + text.size();
  std::vector<TokenId> ids;
  Ids sink(&ids, text.size() / 4 + PieceCache::kShortIds);
  PendingPieces pieces(*merger_, PieceCache::OfThread(number_), end, &sink);
  const ByteTokens& tokens = merger_->tokens();
  auto is_tail = [](const char* p) { return (static_cast<unsigned char>(*p) & 0xC0) == 0x80; };
  uint32_t word = 0;
  auto place = [&](size_t first, const char* start, const char* q) {
    const char* p = start;
    for (TokenId id : sink.From(first)) {
      const char* behind = p + std::min<size_t>(tokens.LengthOf(id), static_cast<size_t>(q - p));
      // A token of a part of a character stands for all of it.
      const char* from = p;
      const char* to = behind;
      while (from > start && from < q && is_tail(from)) --from;
      while (to < q && is_tail(to)) ++to;
      out->push_back(
          {id, static_cast<uint32_t>(from - begin), static_cast<uint32_t>(to - begin), word});
      p = behind;
    }
    ++word;
  };
  out->reserve(out->size() + text.size() / 4);
  for (const char* p = begin; p < end;) {
    const char* q = scanner.Next(p, end);
    if (pieces.full()) pieces.Resolve(place);
    pieces.Add(p, q);
    p = q;
  }
  pieces.Resolve(place);
  *words = word;
}

// Calls `use` with the scanner of the plan.
template <typename Use>
void ByteLevelEncoder::WithScanner(Use use) const {
  switch (plan_.kind) {
    case Kind::kGpt2:
      return use(Gpt2Scanner{});
    case Kind::kCl100k:
      return use(Cl100kScanner<3>{});
    case Kind::kQwen2:
      return use(Cl100kScanner<1>{});
    case Kind::kO200k:
      return use(O200kScanner{});
    case Kind::kDeepSeekV3:
      return use(DeepSeekScanner{});
    default:
      return use(WholeScanner{});
  }
}

bool ByteLevelEncoder::EncodeTokens(std::string_view text, std::vector<PlacedToken>* out,
                                    uint32_t* words) const {
  if (plan_.add_prefix_space) return false;
  WithScanner([&](auto scanner) { EncodeTokensWith(scanner, text, out, words); });
  return true;
}

void ByteLevelEncoder::Encode(std::string_view text, std::vector<TokenId>* ids) const {
  std::string prefixed;
  if (plan_.add_prefix_space && !text.empty() && !text.starts_with(' ')) {
    prefixed = " ";
    prefixed.append(text);
    text = prefixed;
  }
  WithScanner([&](auto scanner) { EncodeWith(scanner, text, ids); });
}

}  // namespace portico::tokenizer
