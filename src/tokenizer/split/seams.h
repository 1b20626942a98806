// Where a long text may be cut so that its parts can be encoded apart, on several threads, with the ids of the whole.
//
// A seam lies between a character X and a character Y such that
//   - the pre-tokenizer ends a piece there whatever stands around, or the model is a BPE without a token that has X
//     before Y, so that no merge crosses it;
//   - each normalizer works on both sides apart (character by character, or by graphemes);
//   - no added token has X before Y, or ends with X, so that none lies across it or begins a new part there;
//   - where a part is encoded with X before it (needs_guard()), the model knows X alone.
// Only what is known to be so is used: a tokenizer with any other part has no seams.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/tokenizer.h"

namespace portico::tokenizer {

// Immutable after construction, safe to use from many threads. Making one reads the vocabulary once.
class Seams {
 public:
  explicit Seams(const Pipeline& pipeline);

  // False: no text has a seam.
  bool any() const { return before_space_any_; }
  // The first seam at or behind `from` and before `to`, as the offset of Y; `to` if there is none.
  size_t Find(std::string_view text, size_t from, size_t to) const;
  // Appends the ids of [begin, end) of `text`, which is valid UTF-8; both are seams, or the text's ends. Neither special
  // tokens nor limits (`options`) are for parts.
  Status EncodePart(const Tokenizer& tokenizer, std::string_view text, size_t begin, size_t end,
                    const Tokenizer::EncodeOptions& options, std::vector<TokenId>* ids) const;
  // Whether the right side is to be encoded with the character X before it, and X's own ids then dropped: so the
  // rules for a text's start do not apply to it. X is one byte then.
  bool needs_guard() const { return needs_guard_; }

 private:
  void ForByteLevel();
  bool ForOthers(const Pipeline& pipeline);
  void ExcludeCrossedByMerges(const Vocabulary& vocabulary, std::string_view image);
  void ExcludeAddedTokens(const AddedTokens& added);
  void ExcludeToken(std::string_view content);

  bool before_space_[128] = {};        // X that may stand before a space
  bool before_space_any_ = false;      // any of these
  bool letters_before_space_ = false;  // X may be any letter outside ASCII
  bool letters_before_stop_ =
      false;  // the same before an ideographic full stop or a full-width comma
  bool needs_guard_ = false;
};

}  // namespace portico::tokenizer
