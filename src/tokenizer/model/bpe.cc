#include "tokenizer/model/bpe.h"

#include <algorithm>
#include <queue>

#include "text/utf8.h"

namespace portico::tokenizer {
namespace {

constexpr int32_t kEnd = -1;
constexpr size_t kShort = 64;

// A short word: look for the lowest rank again after each merge. `get(left, right)` finds a pair's merge.
template <typename Get>
void MergeShort(Get get, std::vector<Token>* symbols) {
  Token* s = symbols->data();
  size_t count = symbols->size();
  Merge next[kShort];  // of symbol i with the one behind it
  for (size_t i = 0; i + 1 < count; ++i) next[i] = get(s[i].id, s[i + 1].id);
  while (count > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < count; ++i) {
      if (next[i].rank < next[best].rank) best = i;
    }
    if (next[best].rank == Merge::kNone) break;
    s[best].id = next[best].id;
    s[best].end = s[best + 1].end;
    for (size_t i = best + 1; i + 1 < count; ++i) {
      s[i] = s[i + 1];
      next[i] = next[i + 1];
    }
    --count;
    if (best + 1 < count) next[best] = get(s[best].id, s[best + 1].id);
    if (best > 0) next[best - 1] = get(s[best - 1].id, s[best].id);
  }
  symbols->resize(count);
}

struct Candidate {
  uint32_t rank;
  int32_t at;
  TokenId id;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;  // for a queue of the least
  }
};

struct Link {
  int32_t previous;
  int32_t next;
  bool gone;
};

// A long word: a queue of candidates; entries that no longer hold are dropped when they come up.
template <typename Get>
void MergeLong(Get get, std::vector<Token>* symbols) {
  std::vector<Token>& s = *symbols;
  auto count = static_cast<int32_t>(s.size());
  std::vector<Link> links(s.size());
  std::vector<Candidate> initial;
  for (int32_t i = 0; i < count; ++i) {
    links[static_cast<size_t>(i)] = {i - 1, i + 1 < count ? i + 1 : kEnd, false};
    if (i + 1 == count) break;
    Merge m = get(s[static_cast<size_t>(i)].id, s[static_cast<size_t>(i) + 1].id);
    if (m.rank != Merge::kNone) initial.push_back({m.rank, i, m.id});
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>{}, std::move(initial));
  auto offer = [&](int32_t left, int32_t right) {
    Merge m = get(s[static_cast<size_t>(left)].id, s[static_cast<size_t>(right)].id);
    if (m.rank != Merge::kNone) queue.push({m.rank, left, m.id});
  };
  while (!queue.empty()) {
    Candidate top = queue.top();
    queue.pop();
    Link& here = links[static_cast<size_t>(top.at)];
    if (here.gone || here.next == kEnd) continue;
    Token& left = s[static_cast<size_t>(top.at)];
    Token& right = s[static_cast<size_t>(here.next)];
    Merge m = get(left.id, right.id);
    if (m.rank == Merge::kNone || m.id != top.id) continue;
    left.id = m.id;
    left.end = right.end;
    Link& behind = links[static_cast<size_t>(here.next)];
    behind.gone = true;
    here.next = behind.next;
    if (here.next != kEnd) links[static_cast<size_t>(here.next)].previous = top.at;
    if (here.previous != kEnd) offer(here.previous, top.at);
    if (here.next != kEnd) offer(top.at, here.next);
  }
  size_t kept = 0;
  for (size_t i = 0; i < s.size(); ++i) {
    if (!links[i].gone) s[kept++] = s[i];
  }
  s.resize(kept);
}

template <typename Get>
void MergeBy(Get get, std::vector<Token>* symbols) {
  if (symbols->size() < 2) return;
  if (symbols->size() <= kShort) {
    MergeShort(get, symbols);
  } else {
    MergeLong(get, symbols);
  }
}

}  // namespace

void MergeSymbols(const MergeTable& merges, std::vector<Token>* symbols) {
  if (merges.empty()) return;
  MergeBy([&](TokenId left, TokenId right) { return merges.Get(left, right); }, symbols);
}

void Bpe::MergeAll(std::vector<Token>* symbols) const {
  if (!merges_.empty()) return MergeSymbols(merges_, symbols);
  if (!pairs_) return;
  MergeBy([this](TokenId left, TokenId right) { return pairs_->Find(left, right); }, symbols);
}

const PairMerges* Bpe::pairs() const {
  std::call_once(pairs_once_, [this] {
    if (!pairs_) pairs_ = PairMerges::Make(merges_);
  });
  return pairs_.get();
}

Bpe::Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options)
    : Model(std::move(vocabulary)), merges_(std::move(merges)), options_(std::move(options)) {
  FindSpecials();
}

Bpe::Bpe(Vocabulary vocabulary, std::unique_ptr<const PairMerges> pairs, BpeOptions options)
    : Model(std::move(vocabulary)), pairs_(std::move(pairs)), options_(std::move(options)) {
  FindSpecials();
}

// The tokens that the options name.
void Bpe::FindSpecials() {
  if (options_.unk_token) unk_id_ = vocabulary_.Find(*options_.unk_token);
  if (!options_.byte_fallback) return;
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (size_t b = 0; b < 256; ++b) {
    std::string name = {'<', '0', 'x', kDigits[b >> 4], kDigits[b & 15], '>'};
    byte_ids_.push_back(vocabulary_.Find(name).value_or(-1));
  }
}

bool Bpe::AppendBytes(std::string_view symbol, uint32_t at, std::vector<Token>* out) const {
  for (char c : symbol) {
    if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
  }
  for (char c : symbol) {
    out->push_back({byte_ids_[static_cast<unsigned char>(c)], at, at + 1});
    ++at;
  }
  return true;
}

// The characters of `piece` as tokens. Offsets count what each token was given, in order, so that a character
// dropped for want of an unknown token moves those behind it, as in the reference.
Status Bpe::Symbols(std::string_view piece, std::vector<Token>* out) const {
  uint32_t offset = 0;
  std::optional<uint32_t> unknown;  // the length of the pending unknown token
  auto flush = [&] {
    if (!unknown) return;
    out->push_back({*unk_id_, offset, offset + *unknown});
    offset += *unknown;
    unknown.reset();
  };
  std::string decorated;
  for (size_t at = 0; at < piece.size();) {
    size_t length = Utf8SequenceLength(piece.substr(at));
    std::string_view symbol = piece.substr(at, length);
    bool last = at + length == piece.size();
    if ((at > 0 && !options_.continuing_subword_prefix.empty()) ||
        (last && !options_.end_of_word_suffix.empty())) {
      decorated = at > 0 ? options_.continuing_subword_prefix : std::string();
      decorated.append(symbol);
      if (last) decorated.append(options_.end_of_word_suffix);
      symbol = decorated;
    }
    at += length;
    auto width = static_cast<uint32_t>(length);
    if (std::optional<TokenId> id = vocabulary_.Find(symbol)) {
      flush();
      out->push_back({*id, offset, offset + width});
      offset += width;
    } else if (options_.byte_fallback && AppendBytes(symbol, offset, out)) {
      offset += static_cast<uint32_t>(symbol.size());
    } else if (options_.unk_token) {
      if (!unk_id_) {
        return Error(StatusCode::kInvalidArgument,
                     "Unk token `" + *options_.unk_token + "` not found in the vocabulary");
      }
      if (unknown && !options_.fuse_unk) flush();
      unknown = unknown.value_or(0) + width;
    }
  }
  flush();
  return OkStatus();
}

Status Bpe::Tokenize(std::string_view piece, std::vector<Token>* out) const {
  if (options_.ignore_merges) {
    if (std::optional<TokenId> id = vocabulary_.Find(piece)) {
      out->push_back({*id, 0, static_cast<uint32_t>(piece.size())});
      return OkStatus();
    }
  }
  std::vector<Token> symbols;
  PORTICO_RETURN_IF_ERROR(Symbols(piece, &symbols));
  MergeAll(&symbols);
  out->insert(out->end(), symbols.begin(), symbols.end());
  return OkStatus();
}

}  // namespace portico::tokenizer
