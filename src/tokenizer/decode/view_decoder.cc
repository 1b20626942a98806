#include "tokenizer/decode/view_decoder.h"

namespace portico {

ViewDecoder::ViewDecoder(const Tokenizer& tokenizer, bool skip_special_tokens,
                         const absl::flat_hash_set<TokenId>* kept)
    : tokenizer_(&tokenizer),
      kept_(kept),
      skip_special_tokens_(skip_special_tokens),
      shown_(tokenizer, skip_special_tokens && kept == nullptr) {}

TokenViews ViewDecoder::PushBoth(TokenId id, std::string* scratch) {
  scratch->clear();
  const bool hidden = Hides(id);
  if (hidden && apart_ == nullptr) {
    apart_ = std::make_unique<Apart>(Apart{shown_.WithSpecialTokens(), {}});
  }
  if (!hidden) shown_.Push(id, scratch);
  if (apart_ == nullptr) return {*scratch, *scratch};
  apart_->text.clear();
  apart_->all.Push(id, &apart_->text);
  return {apart_->text, *scratch};
}

TokenViews ViewDecoder::FlushBoth(std::string* scratch) {
  scratch->clear();
  shown_.Flush(scratch);
  if (apart_ == nullptr) return {*scratch, *scratch};
  apart_->text.clear();
  apart_->all.Flush(&apart_->text);
  return {apart_->text, *scratch};
}

}  // namespace portico
