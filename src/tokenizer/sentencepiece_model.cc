#include "tokenizer/sentencepiece_model.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "text/utf8.h"
#include "tokenizer/bpe.h"

namespace portico::tokenizer {
namespace {

using Kind = SentencePieceSource::Kind;

constexpr std::string_view kSpaceSymbol = "\xE2\x96\x81";
constexpr float kUnkPenalty = 10.0F;

bool IsOrdinary(Kind kind) {
  return kind == Kind::kNormal || kind == Kind::kUserDefined || kind == Kind::kUnused;
}

// What both models do with text that no piece covers.
class SentencePieceBase : public Model {
 protected:
  SentencePieceBase(const SentencePieceSource& source, Vocabulary vocabulary)
      : Model(std::move(vocabulary)), byte_fallback_(source.byte_fallback), byte_ids_(256, -1) {
    for (size_t id = 0; id < source.pieces.size(); ++id) {
      const auto& piece = source.pieces[id];
      kinds_.push_back(piece.kind);
      if (piece.kind == Kind::kUnknown && unk_id_ < 0) unk_id_ = static_cast<TokenId>(id);
      int byte = piece.kind == Kind::kByte ? ByteOfFallbackToken(piece.text) : -1;
      if (byte >= 0) byte_ids_[static_cast<size_t>(byte)] = static_cast<TokenId>(id);
    }
  }

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

  Kind KindOf(TokenId id) const { return kinds_[static_cast<size_t>(id)]; }

  std::vector<Kind> kinds_;
  TokenId unk_id_ = -1;
  bool byte_fallback_;
  std::vector<TokenId> byte_ids_;
};

class SentencePieceUnigram : public SentencePieceBase {
 public:
  SentencePieceUnigram(const SentencePieceSource& source, Vocabulary vocabulary)
      : SentencePieceBase(source, std::move(vocabulary)) {
    float least = std::numeric_limits<float>::max();
    most_ = std::numeric_limits<float>::lowest();
    for (size_t id = 0; id < source.pieces.size(); ++id) {
      const auto& piece = source.pieces[id];
      scores_.push_back(piece.score);
      if (piece.kind == Kind::kNormal) {
        least = std::min(least, piece.score);
        most_ = std::max(most_, piece.score);
      }
      if (IsOrdinary(piece.kind) && !piece.text.empty()) {
        trie_.Add(piece.text, static_cast<TokenId>(id));
      }
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
      uint32_t node = ByteTrie::kRoot;
      for (size_t end = at; end < piece.size();) {
        node = trie_.Child(node, static_cast<unsigned char>(piece[end]));
        if (node == ByteTrie::kNoNode) break;
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
  std::vector<float> scores_;
  float most_;
  float unk_score_;
  ByteTrie trie_;
};

// Merging by score is merging by rank: the ranks are the scores in falling order, equal for equal scores, so that
// the leftmost of equals goes first. Characters that are no pieces have ids behind the vocabulary's.
class SentencePieceBpe : public SentencePieceBase {
 public:
  static constexpr size_t kLongestPiece = 4096;

  SentencePieceBpe(const SentencePieceSource& source, Vocabulary vocabulary)
      : SentencePieceBase(source, std::move(vocabulary)),
        first_character_(static_cast<TokenId>(source.pieces.size())) {
    for (size_t id = 0; id < source.pieces.size(); ++id) {
      const auto& piece = source.pieces[id];
      if (IsOrdinary(piece.kind)) symbols_.emplace(piece.text, static_cast<TokenId>(id));
      if (piece.kind == Kind::kUserDefined) user_defined_.Add(piece.text, static_cast<TokenId>(id));
    }
    TokenId next = first_character_;
    for (const auto& piece : source.pieces) {
      for (size_t at = 0; IsOrdinary(piece.kind) && at < piece.text.size();) {
        size_t length = Utf8SequenceLength(std::string_view(piece.text).substr(at));
        if (symbols_.emplace(piece.text.substr(at, length), next).second) ++next;
        at += length;
      }
    }
    AddMerges(source);
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

  TokenId SymbolOf(std::string_view text) const {
    auto it = symbols_.find(std::string(text));
    return it == symbols_.end() ? -1 : it->second;
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
        if ((static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) continue;
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
    if (token.id >= first_character_) token.id = unk_id_;
    if (token.id < 0 || KindOf(token.id) != Kind::kUnused) {
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

  TokenId first_character_;
  std::unordered_map<std::string, TokenId> symbols_;
  ByteTrie user_defined_;
  MergeTable merges_;
};

class SentencePieceDecoder : public Decoder {
 public:
  explicit SentencePieceDecoder(const SentencePieceSource& source)
      : unk_surface_(source.unk_surface),
        strips_space_(source.add_dummy_prefix || source.remove_extra_whitespaces),
        strips_all_(source.remove_extra_whitespaces) {
    for (const auto& piece : source.pieces) {
      if (piece.kind == Kind::kControl || piece.kind == Kind::kUnknown ||
          piece.kind == Kind::kByte) {
        special_.emplace(piece.text, piece.kind);
      }
    }
  }

  void Apply(std::vector<std::string>* tokens) const override {
    std::string out;
    std::string bytes;
    bool at_start = true;
    bool saw_space = false;
    for (const std::string& token : *tokens) {
      auto it = special_.find(token);
      Kind kind = it == special_.end() ? Kind::kNormal : it->second;
      int byte = kind == Kind::kByte ? ByteOfFallbackToken(token) : -1;
      if (byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
        continue;
      }
      AppendBytes(&bytes, &out);
      if (saw_space || !out.empty()) at_start = false;
      saw_space = false;
      if (kind == Kind::kControl) continue;
      if (kind == Kind::kUnknown) {
        out.append(unk_surface_);
        continue;
      }
      std::string_view text = token;
      if (at_start && strips_space_ && text.starts_with(kSpaceSymbol)) {
        text.remove_prefix(kSpaceSymbol.size());
        saw_space = !strips_all_;
      }
      AppendText(text, &out);
    }
    AppendBytes(&bytes, &out);
    *tokens = {std::move(out)};
  }

 private:
  static void AppendText(std::string_view text, std::string* out) {
    while (!text.empty()) {
      size_t found = text.find(kSpaceSymbol);
      out->append(text.substr(0, found));
      if (found == std::string_view::npos) return;
      out->push_back(' ');
      text.remove_prefix(found + kSpaceSymbol.size());
    }
  }

  // Characters where the bytes are some, U+FFFD for every byte that is not part of one.
  static void AppendBytes(std::string* bytes, std::string* out) {
    std::string_view rest = *bytes;
    while (!rest.empty()) {
      size_t length = Utf8SequenceLength(rest);
      out->append(length > 0 ? rest.substr(0, length) : kReplacementCharacter);
      rest.remove_prefix(std::max<size_t>(length, 1));
    }
    bytes->clear();
  }

  std::string unk_surface_;
  bool strips_space_;
  bool strips_all_;
  std::unordered_map<std::string, Kind> special_;
};

}  // namespace

std::unique_ptr<const Model> MakeSentencePieceUnigram(const SentencePieceSource& source,
                                                      Vocabulary vocabulary) {
  return std::make_unique<SentencePieceUnigram>(source, std::move(vocabulary));
}

StatusOr<std::unique_ptr<const Model>> MakeSentencePieceBpe(const SentencePieceSource& source,
                                                            Vocabulary vocabulary) {
  return std::unique_ptr<const Model>(
      std::make_unique<SentencePieceBpe>(source, std::move(vocabulary)));
}

std::unique_ptr<const Decoder> MakeSentencePieceDecoder(const SentencePieceSource& source) {
  return std::make_unique<SentencePieceDecoder>(source);
}

}  // namespace portico::tokenizer
