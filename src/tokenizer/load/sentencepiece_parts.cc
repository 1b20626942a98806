#include "tokenizer/load/sentencepiece_parts.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"
#include "tokenizer/model/sentencepiece_model.h"
#include "tokenizer/model/space_symbol.h"
#include "tokenizer/normalize/charsmap.h"

namespace portico::tokenizer {
namespace {

using Kind = SentencePieceSource::Kind;

class SentencePieceNormalizer : public Normalizer {
 public:
  SentencePieceNormalizer(const SentencePieceSource& source, std::optional<Charsmap> map)
      : map_(std::move(map)),
        dummy_prefix_(source.add_dummy_prefix),
        squeeze_(source.remove_extra_whitespaces),
        suffix_(source.treat_whitespace_as_suffix),
        space_(source.escape_whitespaces ? kSpaceSymbol : " ") {
    for (const auto& piece : source.pieces) {
      if (piece.kind == Kind::kUserDefined) user_defined_.Add(piece.text, 0);
    }
  }

  Status Apply(NormalizedString* text) const override {
    std::string_view rest = text->text();
    std::vector<NormalizedChar> chars;
    size_t removed_at_start = 0;
    auto pass_over = [&](std::string_view source) {
      auto count = static_cast<int32_t>(CountCodePoints(source));
      if (chars.empty()) {
        removed_at_start += static_cast<size_t>(count);
      } else {
        chars.back().change -= count;
      }
    };
    while (squeeze_ && !rest.empty()) {
      auto [replacement, length] = Step(rest);
      if (replacement != " ") break;
      pass_over(rest.substr(0, length));
      rest.remove_prefix(length);
    }
    if (rest.empty()) {
      text->Transform({}, removed_at_start);
      return OkStatus();
    }
    std::string out;
    std::vector<Span> spans;  // of each byte of `out`, in bytes of the text
    size_t consumed = text->text().size() - rest.size();
    auto append = [&](std::string_view bytes, Span span) {
      out.append(bytes);
      spans.resize(out.size(), span);
    };
    auto at = [&](size_t length) {
      return Span{static_cast<uint32_t>(consumed), static_cast<uint32_t>(consumed + length)};
    };
    if (!suffix_ && dummy_prefix_) append(space_, at(Step(rest).second));
    bool after_space = squeeze_;
    while (!rest.empty()) {
      auto [replacement, length] = Step(rest);
      std::string_view part = replacement;
      while (after_space && part.starts_with(' ')) part.remove_prefix(1);
      for (char c : part) c == ' ' ? append(space_, at(length)) : append({&c, 1}, at(length));
      if (!part.empty()) after_space = part.ends_with(' ');
      rest.remove_prefix(length);
      consumed += length;
      if (!squeeze_) after_space = false;
    }
    while (squeeze_ && out.ends_with(space_)) out.resize(out.size() - space_.size());
    spans.resize(out.size());
    if (suffix_ && dummy_prefix_) append(space_, at(0));
    text->Assign(std::move(out), spans);
    return OkStatus();
  }

 private:
  // What the text begins with becomes, and how long that is.
  std::pair<std::string_view, size_t> Step(std::string_view text) const {
    if (size_t length = UserDefinedPrefix(user_defined_, text)) {
      return {text.substr(0, length), length};
    }
    if (map_) {
      if (auto found = map_->Longest(text)) return {found->second, found->first};
    }
    size_t length = Utf8SequenceLength(text);
    return {text.substr(0, length), length};
  }

  std::optional<Charsmap> map_;
  bool dummy_prefix_;
  bool squeeze_;
  bool suffix_;
  std::string_view space_;
  ByteTrie user_defined_;
};

}  // namespace

size_t UserDefinedPrefix(const ByteTrie& user_defined, std::string_view text) {
  size_t longest = 0;
  uint32_t node = ByteTrie::kRoot;
  for (size_t at = 0; at < text.size(); ++at) {
    node = user_defined.Child(node, static_cast<unsigned char>(text[at]));
    if (node == ByteTrie::kNoNode) break;
    if (user_defined.Value(node) >= 0) longest = at + 1;
  }
  return longest;
}

std::unique_ptr<const Normalizer> MakeSentencePieceNormalizer(const SentencePieceSource& source,
                                                              std::optional<Charsmap> map) {
  return std::make_unique<SentencePieceNormalizer>(source, std::move(map));
}

bool IsSpecialPiece(Kind kind) { return kind != Kind::kNormal && kind != Kind::kUnused; }

namespace {

StatusOr<std::unique_ptr<const Model>> ModelOf(const SentencePieceSource& source) {
  Vocabulary vocabulary;
  for (size_t id = 0; id < source.pieces.size(); ++id) {
    const SentencePieceSource::Piece& piece = source.pieces[id];
    if (!IsValidUtf8(piece.text)) {
      return Error(StatusCode::kInvalidArgument, "a SentencePiece piece is not UTF-8");
    }
    vocabulary.Add(piece.text, static_cast<TokenId>(id), /*keep_old_id=*/true);
  }
  vocabulary.Seal();
  return source.unigram ? MakeSentencePieceUnigram(source, std::move(vocabulary))
                        : MakeSentencePieceBpe(source, std::move(vocabulary));
}

}  // namespace

StatusOr<PipelineParts> PartsOf(SentencePieceSource source, std::unique_ptr<const Model> model) {
  PipelineParts parts;
  for (const SentencePieceSource::Piece& piece : source.pieces) {
    source.byte_fallback = source.byte_fallback || piece.kind == Kind::kByte;
  }
  parts.model = std::move(model);
  if (!parts.model) {
    PORTICO_ASSIGN_OR_RETURN(parts.model, ModelOf(source));
  }
  std::optional<Charsmap> map;
  if (!source.charsmap.empty()) {
    PORTICO_ASSIGN_OR_RETURN(map, Charsmap::Parse(source.charsmap));
  }
  parts.normalizer = MakeSentencePieceNormalizer(source, std::move(map));
  parts.decoder = MakeSentencePieceDecoder(source);
  parts.description = "SentencePiece model";
  return parts;
}

}  // namespace portico::tokenizer
