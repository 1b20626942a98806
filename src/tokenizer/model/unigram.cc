#include "tokenizer/model/unigram.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "text/utf8.h"

namespace portico::tokenizer {
namespace {

// How much less probable than the rarest token an unknown character is.
constexpr double kUnkPenalty = 10.0;
constexpr uint32_t kNowhere = UINT32_MAX;

// The best way to cut the text up to a place.
struct Best {
  double score = 0;
  uint32_t begin = kNowhere;  // of its last token
  TokenId id = -1;
};

}  // namespace

StatusOr<std::unique_ptr<const Model>> Unigram::Make(Vocabulary vocabulary,
                                                     std::vector<double> scores,
                                                     std::optional<TokenId> unk_id,
                                                     bool byte_fallback) {
  if (unk_id && (*unk_id < 0 || static_cast<size_t>(*unk_id) >= scores.size())) {
    return Error(StatusCode::kInvalidArgument,
                 scores.empty() ? "The vocabulary is empty but at least <unk> is needed"
                                : "The `unk_id` is larger than vocabulary size");
  }
  auto model = std::unique_ptr<Unigram>(
      new Unigram(std::move(vocabulary), std::move(scores), unk_id, byte_fallback));
  std::vector<std::pair<std::string_view, TokenId>> keys;
  size_t bytes = 0;
  for (size_t id = 0; id < model->scores_.size(); ++id) {
    std::string_view token = model->vocabulary_.Spelling(static_cast<TokenId>(id));
    if (token.empty()) continue;
    const std::optional<TokenId> found = model->vocabulary_.Find(token);
    if (!found || static_cast<size_t>(*found) >= model->scores_.size()) {
      return Error(StatusCode::kInvalidArgument, "the Unigram vocabulary does not hold its tokens");
    }
    keys.emplace_back(token, *found);
    bytes += token.size();
  }
  if (bytes > DoubleArray::kMaxBytes) {
    return Error(StatusCode::kResourceExhausted, "the Unigram vocabulary is too large");
  }
  model->trie_ = DoubleArray(std::move(keys));
  return std::unique_ptr<const Model>(std::move(model));
}

Unigram::Unigram(Vocabulary vocabulary, std::vector<double> scores, std::optional<TokenId> unk_id,
                 bool byte_fallback)
    : Model(std::move(vocabulary)),
      scores_(std::move(scores)),
      unk_id_(unk_id),
      has_bytes_(byte_fallback) {
  double least = std::numeric_limits<double>::infinity();
  for (double score : scores_) least = std::min(least, score);
  unk_score_ = least - kUnkPenalty;
  if (!has_bytes_) return;
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (size_t b = 0; b < 256; ++b) {
    std::string name = {'<', '0', 'x', kDigits[b >> 4], kDigits[b & 15], '>'};
    byte_ids_.push_back(vocabulary_.Find(name).value_or(-1));
  }
}

// The ids are those of the places in the list.
bool Unigram::IsList() const {
  TokenId next = 0;
  bool ordered = vocabulary_.size() == scores_.size();
  vocabulary_.ForEach([&](std::string_view, TokenId id) { ordered &= id == next++; });
  return ordered;
}

bool Unigram::Save(CompiledWriter* out) const {
  if (!IsList()) return false;
  out->Number<TokenId>(unk_id_.value_or(-1));
  out->Number<uint8_t>(has_bytes_);
  vocabulary_.Save(out);
  out->Rows(scores_);
  trie_.Save(out);
  return true;
}

std::unique_ptr<const Model> Unigram::Restore(CompiledReader* in) {
  TokenId unk = -1;
  bool byte_fallback = false;
  std::optional<Vocabulary> vocabulary;
  std::vector<double> scores;
  if (!in->Number(&unk) || !in->Flag(&byte_fallback) || !(vocabulary = Vocabulary::Restore(in)) ||
      !in->Rows(&scores)) {
    return nullptr;
  }
  const auto limit = static_cast<TokenId>(scores.size());
  std::optional<DoubleArray> trie = DoubleArray::Restore(in, limit);
  if (!trie || !in->AtEnd() || unk < -1 || unk >= limit) return nullptr;
  std::optional<TokenId> unk_id;
  if (unk >= 0) unk_id = unk;
  auto model = std::unique_ptr<Unigram>(
      new Unigram(*std::move(vocabulary), std::move(scores), unk_id, byte_fallback));
  if (!model->IsList()) return nullptr;
  model->trie_ = *std::move(trie);
  return model;
}

void Unigram::AppendPart(std::string_view piece, Token part, std::vector<Token>* out) const {
  // Only unknown parts, which may be several characters, can spell another token than theirs.
  if (!unk_id_ || part.id != *unk_id_) {
    out->push_back(part);
    return;
  }
  std::string_view text = piece.substr(part.begin, part.end - part.begin);
  if (std::optional<TokenId> id = vocabulary_.Find(text)) {
    out->push_back({*id, part.begin, part.end});
    return;
  }
  auto has_byte = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; };
  if (has_bytes_ && std::all_of(text.begin(), text.end(), has_byte)) {
    for (char c : text) {
      out->push_back({byte_ids_[static_cast<unsigned char>(c)], part.begin, part.end});
    }
    return;
  }
  out->push_back({*unk_id_, part.begin, part.end});
}

Status Unigram::Tokenize(std::string_view piece, std::vector<Token>* out) const {
  thread_local std::vector<Best> best;
  best.assign(piece.size() + 1, Best{});
  auto offer = [&](size_t end, double score, size_t begin, TokenId id) {
    Best& b = best[end];
    if (b.begin == kNowhere || score > b.score) b = {score, static_cast<uint32_t>(begin), id};
  };
  for (size_t at = 0; at < piece.size();) {
    size_t width = Utf8SequenceLength(piece.substr(at));
    double till_here = best[at].score;
    bool has_single = false;
    uint32_t node = DoubleArray::kRoot;
    for (size_t end = at; end < piece.size();) {
      node = trie_.Child(node, static_cast<unsigned char>(piece[end]));
      if (node == DoubleArray::kNoNode) break;
      ++end;
      TokenId id = trie_.Value(node);
      if (id < 0) continue;
      offer(end, scores_[static_cast<size_t>(id)] + till_here, at, id);
      has_single = has_single || end == at + width;
    }
    if (!has_single) {
      if (!unk_id_ &&
          (best[at + width].begin == kNowhere || unk_score_ + till_here > best[at + width].score)) {
        return Error(StatusCode::kInvalidArgument,
                     "Encountered an unknown token but `unk_id` is missing");
      }
      offer(at + width, unk_score_ + till_here, at, unk_id_.value_or(-1));
    }
    at += width;
  }

  thread_local std::vector<Token> parts;
  parts.clear();
  auto position = static_cast<uint32_t>(piece.size());
  bool last_unknown = false;
  while (position > 0) {
    const Best& b = best[position];
    bool unknown = unk_id_ && b.id == *unk_id_;
    if (unknown && last_unknown) {
      parts.back().begin = b.begin;
    } else {
      parts.push_back({b.id, b.begin, position});
    }
    last_unknown = unknown;
    position = b.begin;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) AppendPart(piece, *part, out);
  return OkStatus();
}

std::string Unigram::TokenText(std::string_view piece, const Token& token) const {
  if (unk_id_ && token.id == *unk_id_) {
    return std::string(piece.substr(token.begin, token.end - token.begin));
  }
  return std::string(vocabulary_.Spelling(token.id));
}

}  // namespace portico::tokenizer
