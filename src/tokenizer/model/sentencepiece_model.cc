#include "tokenizer/model/sentencepiece_model.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "text/utf8.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/double_array.h"

namespace portico::tokenizer {
namespace {

using Kind = SentencePieceSource::Kind;

constexpr float kUnkPenalty = 10.0F;

bool IsOrdinary(Kind kind) {
  return kind == Kind::kNormal || kind == Kind::kUserDefined || kind == Kind::kUnused;
}

std::vector<uint8_t> KindsOf(const SentencePieceSource& source) {
  std::vector<uint8_t> out;
  for (const auto& piece : source.pieces) out.push_back(static_cast<uint8_t>(piece.kind));
  return out;
}

// What both models do with text that no piece covers. A piece's id is its place.
class SentencePieceBase : public Model {
 public:
  void Save(CompiledWriter* out) const {
    out->Number<uint8_t>(byte_fallback_);
    out->Rows(kinds_);
    vocabulary_.Save(out);
    SaveOwn(out);
  }

 protected:
  SentencePieceBase(bool byte_fallback, std::vector<uint8_t> kinds, Vocabulary vocabulary)
      : Model(std::move(vocabulary)),
        kinds_(std::move(kinds)),
        byte_fallback_(byte_fallback),
        byte_ids_(256, -1) {
    for (size_t i = 0; i < kinds_.size(); ++i) {
      auto id = static_cast<TokenId>(i);
      if (KindOf(id) == Kind::kUnknown && unk_id_ < 0) unk_id_ = id;
      int byte = KindOf(id) == Kind::kByte ? ByteOfFallbackToken(vocabulary_.Spelling(id)) : -1;
      if (byte >= 0) byte_ids_[static_cast<size_t>(byte)] = id;
    }
  }

  virtual void SaveOwn(CompiledWriter* out) const = 0;

  // Appends `part`; a run of unknown parts is one token, or its bytes.
  void AppendPart(std::string_view piece, Token part, bool* after_unknown,
                  std::vector<Token>* out) const {
    bool unknown = part.id < 0 || part.id == unk_id_;
    if (!unknown) {
      out->push_back(part);
    } else if (byte_fallback_) {
      for (uint32_t i = part.begin; i < part.end; ++i) {
        TokenId id = byte_ids_[static_cast<unsigned char>(piece[i])];
        out->push_back({id < 0 ? unk_id_ : id, i, i + 1});
      }
    } else if (*after_unknown && !out->empty()) {
      out->back().end = part.end;
    } else {
      out->push_back({unk_id_, part.begin, part.end});
    }
    *after_unknown = unknown && !byte_fallback_;
  }

  Kind KindOf(TokenId id) const { return static_cast<Kind>(kinds_[static_cast<size_t>(id)]); }

  std::vector<uint8_t> kinds_;
  TokenId unk_id_ = -1;
  bool byte_fallback_;
  std::vector<TokenId> byte_ids_;
};

class SentencePieceUnigram : public SentencePieceBase {
 public:
  SentencePieceUnigram(bool byte_fallback, std::vector<uint8_t> kinds, Vocabulary vocabulary,
                       std::vector<float> scores, DoubleArray trie)
      : SentencePieceBase(byte_fallback, std::move(kinds), std::move(vocabulary)),
        scores_(std::move(scores)),
        trie_(std::move(trie)) {
    float least = std::numeric_limits<float>::max();
    most_ = std::numeric_limits<float>::lowest();
    for (size_t id = 0; id < scores_.size(); ++id) {
      if (KindOf(static_cast<TokenId>(id)) != Kind::kNormal) continue;
      least = std::min(least, scores_[id]);
      most_ = std::max(most_, scores_[id]);
    }
    unk_score_ = least - kUnkPenalty;
  }

  std::string_view Name() const override { return "Unigram"; }

  Status Tokenize(std::string_view piece, std::vector<Token>* out) const override {
    struct Best {
      float score = 0;
      int64_t begin = -1;
      TokenId id = -1;
    };
    std::vector<Best> best(piece.size() + 1);
    for (size_t at = 0; at < piece.size();) {
      size_t width = Utf8SequenceLength(piece.substr(at));
      float till_here = best[at].score;
      bool has_single = false;
      auto offer = [&](size_t end, double score, TokenId id) {
        Best& b = best[end];
        if (b.begin < 0 || score > static_cast<double>(b.score)) {
          b = {static_cast<float>(score), static_cast<int64_t>(at), id};
        }
      };
      uint32_t node = DoubleArray::kRoot;
      for (size_t end = at; end < piece.size();) {
        node = trie_.Child(node, static_cast<unsigned char>(piece[end]));
        if (node == DoubleArray::kNoNode) break;
        ++end;
        TokenId id = trie_.Value(node);
        if (id < 0 || KindOf(id) == Kind::kUnused) continue;
        // A user-defined piece is always better than what it is made of.
        double score = KindOf(id) == Kind::kUserDefined
                           ? static_cast<double>(static_cast<float>(end - at) * most_) - 0.1
                           : static_cast<double>(scores_[static_cast<size_t>(id)]);
        offer(end, score + static_cast<double>(till_here), id);
        has_single = has_single || end == at + width;
      }
      if (!has_single) offer(at + width, static_cast<double>(unk_score_ + till_here), unk_id_);
      at += width;
    }
    std::vector<Token> parts;
    for (auto end = static_cast<uint32_t>(piece.size()); end > 0;) {
      const Best& b = best[end];
      parts.push_back({b.id, static_cast<uint32_t>(b.begin), end});
      end = static_cast<uint32_t>(b.begin);
    }
    bool after_unknown = false;
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      AppendPart(piece, *part, &after_unknown, out);
    }
    return OkStatus();
  }

 private:
  void SaveOwn(CompiledWriter* out) const override {
    out->Rows(scores_);
    trie_.Save(out);
  }

  std::vector<float> scores_;
  float most_;
  float unk_score_;
  DoubleArray trie_;
};

// Merging by score is merging by rank: the ranks are the scores in falling order, equal for equal scores, so that
// the leftmost of equals goes first. Characters that are no pieces have ids behind the vocabulary's.
class SentencePieceBpe : public SentencePieceBase {
 public:
  static constexpr size_t kLongestPiece = 4096;

  SentencePieceBpe(const SentencePieceSource& source, Vocabulary vocabulary)
      : SentencePieceBase(source.byte_fallback, KindsOf(source), std::move(vocabulary)) {
    for (size_t id = 0; id < source.pieces.size(); ++id) {
      const auto& piece = source.pieces[id];
      if (IsOrdinary(piece.kind)) AddSymbol(piece.text, static_cast<TokenId>(id));
    }
    TokenId next = first_character();
    for (const auto& piece : source.pieces) {
      for (size_t at = 0; IsOrdinary(piece.kind) && at < piece.text.size();) {
        size_t length = Utf8SequenceLength(std::string_view(piece.text).substr(at));
        if (AddSymbol(std::string_view(piece.text).substr(at, length), next)) ++next;
        at += length;
      }
    }
    symbols_.Seal();
    AddMerges(source);
    FindUserDefined();
  }

  SentencePieceBpe(bool byte_fallback, std::vector<uint8_t> kinds, Vocabulary vocabulary,
                   Vocabulary symbols, MergeTable merges)
      : SentencePieceBase(byte_fallback, std::move(kinds), std::move(vocabulary)),
        symbols_(std::move(symbols)),
        merges_(std::move(merges)) {
    FindUserDefined();
  }

  std::string_view Name() const override { return "BPE"; }

  Status Tokenize(std::string_view piece, std::vector<Token>* out) const override {
    // User-defined pieces are cut out first, and nothing merges across them.
    std::vector<Token> run;
    bool after_unknown = false;
    auto flush = [&] {
      // A character of no piece has the id -1, which merges with nothing.
      MergeSymbols(merges_, &run);
      for (Token t : run) Resegment(piece, t, &after_unknown, out);
      run.clear();
    };
    for (uint32_t at = 0; at < piece.size();) {
      std::string_view rest = piece.substr(at);
      if (size_t length = UserDefinedPrefix(user_defined_, rest)) {
        flush();
        auto end = static_cast<uint32_t>(at + length);
        AppendPart(piece, {SymbolOf(rest.substr(0, length)), at, end}, &after_unknown, out);
        at = end;
        continue;
      }
      auto end = static_cast<uint32_t>(at + Utf8SequenceLength(rest));
      run.push_back({SymbolOf(rest.substr(0, end - at)), at, end});
      at = end;
    }
    flush();
    return OkStatus();
  }

 private:
  struct Halves {
    TokenId left;
    TokenId right;
    uint32_t middle;
  };

  void SaveOwn(CompiledWriter* out) const override {
    symbols_.Save(out);
    merges_.Save(out);
  }

  TokenId first_character() const { return static_cast<TokenId>(kinds_.size()); }
  TokenId SymbolOf(std::string_view text) const { return symbols_.Find(text).value_or(-1); }
  // The first of two wins.
  bool AddSymbol(std::string_view text, TokenId id) {
    if (symbols_.Find(text)) return false;
    symbols_.Add(text, id);
    return true;
  }

  void FindUserDefined() {
    for (size_t id = 0; id < kinds_.size(); ++id) {
      if (KindOf(static_cast<TokenId>(id)) != Kind::kUserDefined) continue;
      user_defined_.Add(vocabulary_.Spelling(static_cast<TokenId>(id)), static_cast<TokenId>(id));
    }
  }

  void AddMerges(const SentencePieceSource& source) {
    std::vector<float> scores;
    for (const auto& piece : source.pieces) scores.push_back(piece.score);
    std::sort(scores.begin(), scores.end(), std::greater<>());
    scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
    struct Row {
      TokenId left, right;
      Merge merge;
    };
    std::vector<Row> rows;
    for (size_t id = 0; id < source.pieces.size(); ++id) {
      const auto& piece = source.pieces[id];
      if (!IsOrdinary(piece.kind) || piece.text.size() > kLongestPiece) continue;
      auto rank = std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>()) -
                  scores.begin();
      std::string_view text = piece.text;
      for (size_t cut = 1; cut < text.size(); ++cut) {
        if (IsTailByte(text[cut])) continue;
        TokenId left = SymbolOf(text.substr(0, cut));
        TokenId right = SymbolOf(text.substr(cut));
        if (left < 0 || right < 0) continue;
        rows.push_back({left, right, {static_cast<uint32_t>(rank), static_cast<TokenId>(id)}});
      }
    }
    merges_.Reserve(rows.size());
    for (const Row& row : rows) merges_.Add(row.left, row.right, row.merge);
  }

  // Pieces that are marked unused are only steps on the way to others: they fall apart again.
  void Resegment(std::string_view piece, Token token, bool* after_unknown,
                 std::vector<Token>* out) const {
    if (token.id >= first_character()) token.id = unk_id_;
    const bool whole = token.id < 0 || KindOf(token.id) != Kind::kUnused;
    if (whole || token.end - token.begin > kLongestPiece) {
      AppendPart(piece, token, after_unknown, out);
      return;
    }
    std::string_view text = piece.substr(token.begin, token.end - token.begin);
    std::optional<Halves> halves = HalvesOf(text);
    if (!halves) {
      AppendPart(piece, token, after_unknown, out);
      return;
    }
    uint32_t middle = token.begin + halves->middle;
    Resegment(piece, {halves->left, token.begin, middle}, after_unknown, out);
    Resegment(piece, {halves->right, middle, token.end}, after_unknown, out);
  }

  // How a piece comes about from its characters alone: the last merge's two sides.
  std::optional<Halves> HalvesOf(std::string_view text) const {
    std::vector<Token> symbols;
    for (uint32_t at = 0; at < text.size();) {
      auto end = static_cast<uint32_t>(at + Utf8SequenceLength(text.substr(at)));
      symbols.push_back({SymbolOf(text.substr(at, end - at)), at, end});
      at = end;
    }
    while (symbols.size() > 2) {
      size_t best = 0;
      Merge least;
      for (size_t i = 0; i + 1 < symbols.size(); ++i) {
        Merge m = merges_.Get(symbols[i].id, symbols[i + 1].id);
        if (m.rank < least.rank) {
          least = m;
          best = i;
        }
      }
      if (least.rank == Merge::kNone) return std::nullopt;
      symbols[best] = {least.id, symbols[best].begin, symbols[best + 1].end};
      symbols.erase(symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
    }
    if (symbols.size() != 2) return std::nullopt;
    return Halves{symbols[0].id, symbols[1].id, symbols[0].end};
  }

  Vocabulary symbols_;
  ByteTrie user_defined_;
  MergeTable merges_;
};

}  // namespace

StatusOr<std::unique_ptr<const Model>> MakeSentencePieceUnigram(const SentencePieceSource& source,
                                                                Vocabulary vocabulary) {
  std::vector<float> scores;
  std::vector<std::pair<std::string_view, TokenId>> keys;
  size_t bytes = 0;
  for (size_t id = 0; id < source.pieces.size(); ++id) {
    const auto& piece = source.pieces[id];
    scores.push_back(piece.score);
    if (!IsOrdinary(piece.kind) || piece.text.empty()) continue;
    keys.emplace_back(piece.text, static_cast<TokenId>(id));
    bytes += piece.text.size();
  }
  if (bytes > DoubleArray::kMaxBytes) {
    return Error(StatusCode::kResourceExhausted, "the Unigram vocabulary is too large");
  }
  return std::unique_ptr<const Model>(std::make_unique<SentencePieceUnigram>(
      source.byte_fallback, KindsOf(source), std::move(vocabulary), std::move(scores),
      DoubleArray(std::move(keys))));
}

StatusOr<std::unique_ptr<const Model>> MakeSentencePieceBpe(const SentencePieceSource& source,
                                                            Vocabulary vocabulary) {
  return std::unique_ptr<const Model>(
      std::make_unique<SentencePieceBpe>(source, std::move(vocabulary)));
}

bool SaveSentencePieceModel(const Model& model, CompiledWriter* out) {
  const auto* piece_model = dynamic_cast<const SentencePieceBase*>(&model);
  if (piece_model == nullptr) return false;
  out->Number<uint8_t>(dynamic_cast<const SentencePieceUnigram*>(&model) != nullptr);
  piece_model->Save(out);
  return true;
}

std::unique_ptr<const Model> RestoreSentencePieceModel(CompiledReader* in) {
  bool unigram = false;
  bool byte_fallback = false;
  std::vector<uint8_t> kinds;
  std::optional<Vocabulary> vocabulary;
  if (!in->Flag(&unigram) || !in->Flag(&byte_fallback) || !in->Rows(&kinds) ||
      !(vocabulary = Vocabulary::Restore(in)) ||
      static_cast<size_t>(int64_t{vocabulary->max_id()} + 1) != kinds.size()) {
    return nullptr;
  }
  if (unigram) {
    std::vector<float> scores;
    if (!in->Rows(&scores) || scores.size() != kinds.size()) return nullptr;
    auto trie = DoubleArray::Restore(in, static_cast<TokenId>(kinds.size()));
    if (!trie || !in->AtEnd()) return nullptr;
    return std::make_unique<SentencePieceUnigram>(byte_fallback, std::move(kinds),
                                                  *std::move(vocabulary), std::move(scores),
                                                  *std::move(trie));
  }
  std::optional<Vocabulary> symbols = Vocabulary::Restore(in);
  MergeTable merges;
  if (!symbols || !merges.Restore(in, std::numeric_limits<TokenId>::max()) || !in->AtEnd()) {
    return nullptr;
  }
  return std::make_unique<SentencePieceBpe>(byte_fallback, std::move(kinds), *std::move(vocabulary),
                                            *std::move(symbols), std::move(merges));
}

}  // namespace portico::tokenizer
