#include "tokenizer/byte_level_encoder.h"

#include <atomic>

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
  while (p < end) {
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
  return encoder;
}

ByteLevelEncoder::ByteLevelEncoder(const Bpe& model, ByteLevelPlan plan)
    : model_(model), plan_(plan) {
  static std::atomic<uint64_t> next{1};
  number_ = next.fetch_add(1, std::memory_order_relaxed);
}

void ByteLevelEncoder::EncodePiece(const char* begin, const char* end, const char* text_end,
                                   PieceCache* cache, std::vector<TokenId>* ids) const {
  auto length = static_cast<size_t>(end - begin);
  std::string_view piece(begin, length);
  size_t before = ids->size();
  if (length <= PieceCache::kShortBytes) {
    PieceCache::Key key = PieceCache::KeyOf(begin, length, static_cast<size_t>(text_end - begin));
    if (const PieceCache::Short* hit = cache->FindShort(key)) {
      if (hit->count == 1) {
        ids->push_back(hit->ids[0]);
      } else {
        ids->insert(ids->end(), hit->ids, hit->ids + hit->count);
      }
      return;
    }
    EncodeNewPiece(piece, ids);
    size_t count = ids->size() - before;
    if (count <= PieceCache::kShortIds) cache->AddShort(key, ids->data() + before, count);
    return;
  }
  if (length > PieceCache::kLongBytes) {
    EncodeNewPiece(piece, ids);
    return;
  }
  uint64_t hash = HashBytes(piece);
  size_t count = 0;
  if (const TokenId* hit = cache->FindLong(piece, hash, &count)) {
    ids->insert(ids->end(), hit, hit + count);
    return;
  }
  EncodeNewPiece(piece, ids);
  cache->AddLong(piece, hash, ids->data() + before, ids->size() - before);
}

void ByteLevelEncoder::EncodeNewPiece(std::string_view piece, std::vector<TokenId>* ids) const {
  if (model_.options().ignore_merges) {
    if (std::optional<TokenId> id = model_.vocabulary().Find(ToByteLevel(piece))) {
      ids->push_back(*id);
      return;
    }
  }
  thread_local std::vector<Token> symbols;
  symbols.clear();
  atoms_->AppendSymbols(piece, &symbols);
  MergeSymbols(model_.merges(), &symbols);
  for (const Token& t : symbols) ids->push_back(t.id);
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
  auto sink = [&](const char* p, const char* q) { EncodePiece(p, q, end, cache, ids); };
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
