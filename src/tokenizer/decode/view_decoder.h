// Both views of ids that arrive one at a time: the text with its special tokens, and the text that is shown.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "tokenizer/decode/stream_decoder.h"
#include "tokenizer/decode/token_views.h"
#include "tokenizer/token_id.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// One stream. Each view is, joined, Decode() of its tokens, as StreamDecoder has it. They are one stream until the first
// hidden token comes, so that the second one costs nothing before. Not for two threads at once.
class ViewDecoder {
 public:
  // `kept`: special tokens that are shown even with skip_special_tokens; null: none. It and `tokenizer` outlive this.
  ViewDecoder(const Tokenizer& tokenizer, bool skip_special_tokens,
              const absl::flat_hash_set<TokenId>* kept = nullptr);

  // StreamDecoder::Continue().
  void Continue(std::span<const TokenId> prompt) { shown_.Continue(prompt, skip_special_tokens_); }

  // A token that the shown view leaves out.
  bool Hides(TokenId id) const {
    return skip_special_tokens_ && tokenizer_->IsSpecial(id) &&
           (kept_ == nullptr || !kept_->contains(id));
  }
  // StreamDecoder::TokenBytes() in the shown view.
  std::string TokenBytes(TokenId id) const { return shown_.TokenBytes(id); }

  // A stream is read by Push() and Flush(), which append to the shown view, or by the others, which give both; their
  // views are valid until `scratch`, which is overwritten, or this changes.
  void Push(TokenId id, std::string* shown) {
    if (kept_ == nullptr || !Hides(id)) shown_.Push(id, shown);
  }
  void Flush(std::string* shown) { shown_.Flush(shown); }
  TokenViews PushBoth(TokenId id, std::string* scratch);
  TokenViews FlushBoth(std::string* scratch);

 private:
  // The view with special tokens, once it differs.
  struct Apart {
    StreamDecoder all;
    std::string text;
  };

  const Tokenizer* tokenizer_;
  const absl::flat_hash_set<TokenId>* kept_;
  bool skip_special_tokens_;
  StreamDecoder shown_;
  std::unique_ptr<Apart> apart_;
};

}  // namespace portico
