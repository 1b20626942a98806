// A long text, encoded in parts, so that whoever waits for the ids may give up between two of them.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "tokenizer/tokenizer.h"

namespace portico {

namespace tokenizer {
class Seams;
}

// Thread safe.
class LongTextEncoder {
 public:
  static constexpr size_t kPartBytes = size_t{1} << 20;

  // A part has `part_bytes` and what follows up to the next place where the text may be cut without changing its ids
  // (split/seams.h). A tokenizer without such places encodes every text whole.
  explicit LongTextEncoder(std::shared_ptr<const Tokenizer> tokenizer,
                           size_t part_bytes = kPartBytes);
  ~LongTextEncoder();
  LongTextEncoder(const LongTextEncoder&) = delete;
  LongTextEncoder& operator=(const LongTextEncoder&) = delete;

  // As Tokenizer::TryEncode(). Before each part `go_on` is called; its error is returned, and nothing is appended.
  Status Encode(std::string_view text, bool add_special_tokens, absl::FunctionRef<Status()> go_on,
                std::vector<TokenId>* ids) const;

 private:
  Status EncodeParts(std::string_view text, bool add_special_tokens,
                     absl::FunctionRef<Status()> go_on, std::vector<TokenId>* ids) const;

  const std::shared_ptr<const Tokenizer> tokenizer_;
  const size_t part_bytes_;
  // Made for the first long text: it reads the vocabulary.
  mutable absl::once_flag made_;
  mutable std::unique_ptr<const tokenizer::Seams> seams_;
};

}  // namespace portico
