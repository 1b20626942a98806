#include "tokenizer/compiled/compiled_model.h"

#include <utility>
#include <vector>

#include "tokenizer/compiled/compiled_file.h"
#include "tokenizer/model/bpe.h"
#include "tokenizer/model/sentencepiece_model.h"
#include "tokenizer/model/unigram.h"
#include "tokenizer/model/word_models.h"

namespace portico::tokenizer {
namespace {

enum class Kind : uint8_t {
  kBpe = 1,
  kUnigram = 2,
  kWordPiece = 3,
  kWordLevel = 4,
  kSentencePiece = 5
};

void WriteBpe(const Bpe& model, CompiledWriter* out) {
  const BpeOptions& o = model.options();
  out->Number<uint8_t>(o.unk_token.has_value());
  out->Text(o.unk_token.value_or(""));
  out->Text(o.continuing_subword_prefix);
  out->Text(o.end_of_word_suffix);
  for (bool flag : {o.fuse_unk, o.byte_fallback, o.ignore_merges}) out->Number<uint8_t>(flag);
  model.vocabulary().Save(out);
  const PairMerges* pairs = model.pairs();
  out->Number<uint8_t>(pairs != nullptr);
  if (pairs != nullptr) {
    pairs->Save(out);
  } else {
    model.merges().Save(out);
  }
}

std::unique_ptr<const Model> ReadBpe(CompiledReader* in) {
  BpeOptions o;
  bool has_unk = false;
  std::string_view unk;
  std::string_view prefix;
  std::string_view suffix;
  bool read = in->Flag(&has_unk) && in->Text(&unk) && in->Text(&prefix) && in->Text(&suffix) &&
              in->Flag(&o.fuse_unk) && in->Flag(&o.byte_fallback) && in->Flag(&o.ignore_merges);
  std::optional<Vocabulary> vocabulary;
  bool has_pairs = false;
  if (!read || !(vocabulary = Vocabulary::Restore(in)) || !in->Flag(&has_pairs)) return nullptr;
  if (has_unk) o.unk_token = std::string(unk);
  o.continuing_subword_prefix = std::string(prefix);
  o.end_of_word_suffix = std::string(suffix);
  TokenId limit = vocabulary->max_id() + 1;
  if (has_pairs) {
    std::unique_ptr<const PairMerges> pairs = PairMerges::Restore(in, limit);
    if (!pairs || !in->AtEnd()) return nullptr;
    return std::make_unique<Bpe>(*std::move(vocabulary), std::move(pairs), std::move(o));
  }
  MergeTable merges;
  if (!merges.Restore(in, limit) || !in->AtEnd()) return nullptr;
  return std::make_unique<Bpe>(*std::move(vocabulary), std::move(merges), std::move(o));
}

std::unique_ptr<const Model> ReadWordPiece(CompiledReader* in) {
  WordPieceOptions o;
  std::string_view unk;
  std::string_view prefix;
  std::optional<Vocabulary> vocabulary;
  if (!in->Text(&unk) || !in->Text(&prefix) || !in->Number(&o.max_input_chars_per_word) ||
      !(vocabulary = Vocabulary::Restore(in)) || !in->AtEnd()) {
    return nullptr;
  }
  o.unk_token = std::string(unk);
  o.continuing_subword_prefix = std::string(prefix);
  return std::make_unique<WordPiece>(*std::move(vocabulary), std::move(o));
}

std::unique_ptr<const Model> ReadWordLevel(CompiledReader* in) {
  std::string_view unk;
  std::optional<Vocabulary> vocabulary;
  if (!in->Text(&unk) || !(vocabulary = Vocabulary::Restore(in)) || !in->AtEnd()) {
    return nullptr;
  }
  return std::make_unique<WordLevel>(*std::move(vocabulary), std::string(unk));
}

}  // namespace

bool SaveModel(const Model& model, CompiledWriter* out) {
  auto kind = [&](Kind k) { out->Number(static_cast<uint8_t>(k)); };
  if (const auto* bpe = dynamic_cast<const Bpe*>(&model)) {
    kind(Kind::kBpe);
    WriteBpe(*bpe, out);
  } else if (const auto* unigram = dynamic_cast<const Unigram*>(&model)) {
    kind(Kind::kUnigram);
    return unigram->Save(out);
  } else if (const auto* pieces = dynamic_cast<const WordPiece*>(&model)) {
    kind(Kind::kWordPiece);
    out->Text(pieces->options().unk_token);
    out->Text(pieces->options().continuing_subword_prefix);
    out->Number(pieces->options().max_input_chars_per_word);
    model.vocabulary().Save(out);
  } else if (const auto* words = dynamic_cast<const WordLevel*>(&model)) {
    kind(Kind::kWordLevel);
    out->Text(words->unk_token());
    model.vocabulary().Save(out);
  } else {
    kind(Kind::kSentencePiece);
    return SaveSentencePieceModel(model, out);
  }
  return true;
}

std::unique_ptr<const Model> RestoreModel(std::string_view bytes) {
  CompiledReader in(bytes);
  uint8_t kind = 0;
  if (!in.Number(&kind)) return nullptr;
  switch (static_cast<Kind>(kind)) {
    case Kind::kBpe:
      return ReadBpe(&in);
    case Kind::kUnigram:
      return Unigram::Restore(&in);
    case Kind::kWordPiece:
      return ReadWordPiece(&in);
    case Kind::kWordLevel:
      return ReadWordLevel(&in);
    case Kind::kSentencePiece:
      return RestoreSentencePieceModel(&in);
  }
  return nullptr;
}

}  // namespace portico::tokenizer
