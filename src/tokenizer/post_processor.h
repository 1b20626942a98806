// The post-processors of tokenizer.json: special tokens around a text, types, and trimmed offsets.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "text/json.h"
#include "tokenizer/encoding.h"

namespace portico::tokenizer {

// The ids that stand before, between and behind the sequences.
struct SpecialFrame {
  bool known = false;  // false: only the general way knows
  std::vector<TokenId> before;
  std::vector<TokenId> after;
};

// What it does to offsets: nothing; spaces at the ends of tokens are left out, everywhere alike; or something else.
enum class OffsetTrim { kNone, kSpaces, kOther };

// Immutable, safe to use from many threads.
class PostProcessor {
 public:
  virtual ~PostProcessor() = default;

  // How many tokens it adds around one sequence or a pair.
  virtual size_t AddedTokens(bool pair) const = 0;
  // `parts` holds one encoding or two; it may become any number of them, to be joined in order.
  virtual void Apply(bool add_special_tokens, std::vector<Encoding>* parts) const = 0;
  // What it puts around a single text.
  virtual SpecialFrame FrameOfSingle() const { return {}; }
  virtual OffsetTrim trim() const { return OffsetTrim::kNone; }

  // From the object in the file; null becomes a null pointer.
  static StatusOr<std::unique_ptr<const PostProcessor>> FromJson(const Json& json);
};

}  // namespace portico::tokenizer
