// Patterns of Split and Replace that no hand-written scanner knows: Oniguruma's syntax, matched by
// PCRE2's JIT.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/normalize/normalized_string.h"

namespace portico::tokenizer {

// Immutable and safe to use from many threads. Character classes (\p{..}, \s, \w, \d, [[:alpha:]]
// …) are those of text/unicode.h, so that they are the reference's and not the library's.
class Regex {
 public:
  // What differs between the two engines that tokenizer files are written for.
  enum class Syntax {
    kOniguruma,   // tokenizer.json: {n,m}+ repeats, ^ and $ match at lines
    kFancyRegex,  // tiktoken: {n,m}+ is possessive, ^ and $ match at the ends of the text
  };

  // Constructs of the source syntax that cannot be carried over are an error, not a guess.
  static StatusOr<std::shared_ptr<const Regex>> Compile(std::string_view pattern,
                                                        Syntax syntax = Syntax::kOniguruma);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  // Covers `text` with matches and the parts between them. INVALID_ARGUMENT where that takes more tries than any pattern
  // of use needs: (a|aa)+b has exponentially many ways not to match "aaaaa…".
  StatusOr<std::vector<Match>> FindMatches(std::string_view text) const;

 private:
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

// The pattern in PCRE2's syntax. `share_classes`: a class of many characters is written once, at the front, and called
// where it stands; slower to match, but PCRE2 holds no more than 64 KB of a pattern, about ten such classes.
StatusOr<std::string> TranslatePattern(std::string_view pattern, Regex::Syntax syntax,
                                       bool share_classes = false);

}  // namespace portico::tokenizer
