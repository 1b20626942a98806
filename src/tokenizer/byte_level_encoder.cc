#include "tokenizer/byte_level_encoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "text/utf8.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/scanner_inline.h"

namespace portico::tokenizer {
namespace {

using Kind = ByteLevelPlan::Kind;

template <typename Next, typename Sink>
void Cut(const char* p, const char* end, Next next, Sink sink) {
  while (p < end) {
    const char* q = next(p, end);
    sink(p, q);
    p = q;
  }
}

// DeepSeek's third pattern inside [p, end); what it does not match is a piece of its own.
template <typename Sink>
void CutDeepSeekWords(const CharClasses& classes, const char* p, const char* end, Sink& sink) {
  const char* previous = p;
  while (p < end) {
    const char* q = scan::DeepSeekWord(classes, p, end);
    if (q == p) {
      p += ClassAt(classes, p).length;
      continue;
    }
    if (previous != p) sink(previous, p);
    sink(p, q);
    previous = p = q;
  }
  if (previous != end) sink(previous, end);
}

template <typename Sink>
void CutDeepSeek(const CharClasses& classes, const char* p, const char* end, Sink& sink) {
  const char* previous = p;
  while ((p = scan::SkipToDigitOrWide(p, end)) < end) {
    ClassedChar c = ClassAt(classes, p);
    const char* q = p;
    if ((c.char_class & kNumber) != 0) {
      q = scan::Numbers<3>(classes, p, end);
    } else if (c.length == 3) {
      while (q < end && scan::IsDeepSeekCjk(q)) q += 3;
    }
    if (q == p) {
      p += c.length;
      continue;
    }
    if (previous != p) CutDeepSeekWords(classes, previous, p, sink);
    CutDeepSeekWords(classes, p, q, sink);
    previous = p = q;
  }
  if (previous != end) CutDeepSeekWords(classes, previous, end, sink);
}

// Appends to a vector with room to spare, so that an id costs a store.
class IdSink {
 public:
  explicit IdSink(std::vector<TokenId>* ids) : ids_(ids), size_(ids->size()) {}
  ~IdSink() { ids_->resize(size_); }
  IdSink(const IdSink&) = delete;
  IdSink& operator=(const IdSink&) = delete;

  // Appends the `count` ids at `from`, of which kShortIds may be read in any case.
  void AppendShort(const TokenId* from, size_t count) {
    if (ids_->size() - size_ < PieceCache::kShortIds) Grow(PieceCache::kShortIds);
    std::memcpy(ids_->data() + size_, from, PieceCache::kShortIds * sizeof(TokenId));
    size_ += count;
  }
  void Append(const TokenId* from, size_t count) {
    if (ids_->size() - size_ < count) Grow(count);
    std::memcpy(ids_->data() + size_, from, count * sizeof(TokenId));
    size_ += count;
  }

 private:
  void Grow(size_t count) {
    constexpr size_t kStep = 1024;
    ids_->resize(size_ + std::max({count, kStep, size_ / 2}));
  }

  std::vector<TokenId>* ids_;
  size_t size_;
};

}  // namespace

std::unique_ptr<const ByteLevelEncoder> ByteLevelEncoder::Make(const Bpe& model,
                                                               ByteLevelPlan plan) {
  const BpeOptions& o = model.options();
  if (plan.kind == Kind::kNone || o.unk_token || o.byte_fallback ||
      !o.continuing_subword_prefix.empty() || !o.end_of_word_suffix.empty()) {
    return nullptr;
  }
  std::unique_ptr<ByteLevelEncoder> encoder(new ByteLevelEncoder(model, plan));
  for (size_t b = 0; b < 256; ++b) {
    std::string spelling;
    AppendUtf8(kByteLevelChars[b], &spelling);
    std::optional<TokenId> id = model.vocabulary().Find(spelling);
    if (!id) return nullptr;
    encoder->byte_ids_[b] = *id;
  }
  encoder->atoms_ = std::make_unique<CharAtoms>(model, encoder->byte_ids_);
  CharClasses::Get();  // built now, so that the first text does not wait for it
  return encoder;
}

ByteLevelEncoder::ByteLevelEncoder(const Bpe& model, ByteLevelPlan plan)
    : model_(model), plan_(plan) {
  static std::atomic<uint64_t> next{1};
  number_ = next.fetch_add(1, std::memory_order_relaxed);
}

std::span<const TokenId> ByteLevelEncoder::EncodeNewPiece(std::string_view piece) const {
  thread_local std::vector<TokenId> ids;
  ids.clear();
  if (model_.options().ignore_merges) {
    if (std::optional<TokenId> id = model_.vocabulary().Find(ToByteLevel(piece))) {
      ids.push_back(*id);
      return ids;
    }
  }
  thread_local std::vector<Token> symbols;
  symbols.clear();
  atoms_->AppendSymbols(piece, &symbols);
  MergeSymbols(model_.merges(), &symbols);
  for (const Token& t : symbols) ids.push_back(t.id);
  return ids;
}

std::span<const TokenId> ByteLevelEncoder::EncodeLong(std::string_view piece,
                                                      PieceCache* cache) const {
  if (piece.size() > PieceCache::kLongBytes) return EncodeNewPiece(piece);
  uint64_t hash = HashBytes(piece);
  size_t count = 0;
  if (const TokenId* hit = cache->FindLong(piece, hash, &count)) return {hit, count};
  std::span<const TokenId> ids = EncodeNewPiece(piece);
  cache->AddLong(piece, hash, ids.data(), ids.size());
  return ids;
}

void ByteLevelEncoder::Encode(std::string_view text, std::vector<TokenId>* ids) const {
  const CharClasses& classes = CharClasses::Get();
  std::string prefixed;
  if (plan_.add_prefix_space && !text.empty() && !text.starts_with(' ')) {
    prefixed = " ";
    prefixed.append(text);
    text = prefixed;
  }
  const char* begin = text.data();
  const char* end = begin + text.size();
  PieceCache* cache = PieceCache::OfThread(number_);
  IdSink out(ids);
  auto sink = [&](const char* p, const char* q) {
    auto length = static_cast<size_t>(q - p);
    if (length > PieceCache::kShortBytes) [[unlikely]] {
      std::span<const TokenId> found = EncodeLong({p, length}, cache);
      out.Append(found.data(), found.size());
      return;
    }
    PieceCache::Key key = PieceCache::KeyOf(p, length, static_cast<size_t>(end - p));
    if (const PieceCache::Short* hit = cache->FindShort(key)) [[likely]] {
      out.AppendShort(hit->ids, hit->count);
      return;
    }
    std::span<const TokenId> found = EncodeNewPiece({p, length});
    out.Append(found.data(), found.size());
    if (found.size() <= PieceCache::kShortIds) cache->AddShort(key, found.data(), found.size());
  };
  switch (plan_.kind) {
    case Kind::kGpt2:
      Cut(
          begin, end, [&](const char* p, const char* e) { return scan::Gpt2(classes, p, e); },
          sink);
      break;
    case Kind::kCl100k:
      Cut(
          begin, end, [&](const char* p, const char* e) { return scan::Cl100k<3>(classes, p, e); },
          sink);
      break;
    case Kind::kQwen2:
      Cut(
          begin, end, [&](const char* p, const char* e) { return scan::Cl100k<1>(classes, p, e); },
          sink);
      break;
    case Kind::kO200k:
      Cut(
          begin, end, [&](const char* p, const char* e) { return scan::O200k(classes, p, e); },
          sink);
      break;
    case Kind::kDeepSeekV3:
      CutDeepSeek(classes, begin, end, sink);
      break;
    default:
      if (begin != end) sink(begin, end);
      break;
  }
}

}  // namespace portico::tokenizer
