// The pattern of a Split, a Replace and the like: a literal, a known pattern with its own scanner,
// or a regex.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/json.h"
#include "tokenizer/normalize/normalized_string.h"
#include "tokenizer/regex/regex.h"
#include "tokenizer/split/scanners.h"

namespace portico::tokenizer {

// Covers `text` with the places of `literal` and the parts between them. An empty one is before every character and at
// the end.
std::vector<Match> FindLiteral(std::string_view literal, std::string_view text);

class SplitPattern {
 public:
  // {"String": …} or {"Regex": …}
  static StatusOr<SplitPattern> FromJson(const Json* json);
  static StatusOr<SplitPattern> FromRegex(std::string_view pattern,
                                          Regex::Syntax syntax = Regex::Syntax::kOniguruma);
  static SplitPattern FromString(std::string literal);

  // Covers `text` with matches and the parts between them. INVALID_ARGUMENT where a regex gives up.
  StatusOr<std::vector<Match>> FindMatches(std::string_view text) const;

  KnownPattern known() const { return known_; }
  // The literal that is looked for; "" if this is none.
  const std::string& literal() const { return literal_; }

 private:
  SplitPattern() = default;

  std::string literal_;
  KnownPattern known_ = KnownPattern::kNone;
  std::shared_ptr<const Regex> regex_;
};

}  // namespace portico::tokenizer
