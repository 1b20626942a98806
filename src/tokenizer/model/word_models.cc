#include "tokenizer/model/word_models.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace portico::tokenizer {

WordPiece::WordPiece(Vocabulary vocabulary, WordPieceOptions options)
    : Model(std::move(vocabulary)), options_(std::move(options)) {
  vocabulary_.ForEach(
      [this](std::string_view token, TokenId) { longest_ = std::max(longest_, token.size()); });
}

Status WordPiece::Unknown(std::string_view piece, std::vector<Token>* out) const {
  std::optional<TokenId> id = vocabulary_.Find(options_.unk_token);
  if (!id) {
    return Error(StatusCode::kInvalidArgument,
                 "WordPiece error: Missing [UNK] token from the vocabulary");
  }
  out->push_back({*id, 0, static_cast<uint32_t>(piece.size())});
  return OkStatus();
}

Status WordPiece::Tokenize(std::string_view piece, std::vector<Token>* out) const {
  if (piece.size() > options_.max_input_chars_per_word &&
      CountCodePoints(piece) > options_.max_input_chars_per_word) {
    return Unknown(piece, out);
  }
  size_t before = out->size();
  std::string candidate;
  for (size_t at = 0; at < piece.size();) {
    candidate = at > 0 ? options_.continuing_subword_prefix : std::string();
    size_t prefix = candidate.size();
    size_t most = longest_ > prefix ? longest_ - prefix : 0;
    size_t length = std::min(piece.size() - at, most);
    while (length > 0 && at + length < piece.size() && IsTailByte(piece[at + length])) {
      --length;
    }
    candidate.append(piece.substr(at, length));
    std::optional<TokenId> id;
    while (length > 0 && !(id = vocabulary_.Find(candidate))) {
      do --length;
      while (length > 0 && IsTailByte(piece[at + length]));
      candidate.resize(prefix + length);
    }
    if (!id) {
      out->resize(before);
      return Unknown(piece, out);
    }
    out->push_back({*id, static_cast<uint32_t>(at), static_cast<uint32_t>(at + length)});
    at += length;
  }
  return OkStatus();
}

WordLevel::WordLevel(Vocabulary vocabulary, std::string unk_token)
    : Model(std::move(vocabulary)), unk_token_(std::move(unk_token)) {}

Status WordLevel::Tokenize(std::string_view piece, std::vector<Token>* out) const {
  std::optional<TokenId> id = vocabulary_.Find(piece);
  if (!id) id = vocabulary_.Find(unk_token_);
  if (!id) {
    return Error(StatusCode::kInvalidArgument,
                 "WordLevel error: Missing [UNK] token from the vocabulary");
  }
  out->push_back({*id, 0, static_cast<uint32_t>(piece.size())});
  return OkStatus();
}

std::string WordLevel::TokenText(std::string_view piece, const Token&) const {
  return std::string(vocabulary_.Find(piece) ? piece : std::string_view(unk_token_));
}

}  // namespace portico::tokenizer
