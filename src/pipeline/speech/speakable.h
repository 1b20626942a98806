// Text as people and models write it → text that an English voice can say.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace portico::pipeline {

// ASCII words and punctuation: Markdown is taken away, accents are folded, numbers lose their
// thousands separators, symbols become words ("7 + 5 = 12" → "7 plus 5 equals 12"), and what has no
// sound (emoji, bullets) is dropped. Empty if nothing is left to say. INVALID_ARGUMENT (field
// "input") for letters of other scripts, which name the language stage to configure.
StatusOr<std::string> Speakable(std::string_view text);

// Cuts text into clauses as it comes: the first ends as early as it can, so that the voice begins
// at once, the others with their sentences. Links of Markdown are not cut.
class ClauseSplitter {
 public:
  // `clauses`: later ones may end at commas, too.
  explicit ClauseSplitter(bool clauses = false) : clauses_(clauses) {}

  // Appends the piece; then Next() gives clauses until it gives none.
  void Feed(std::string_view piece) { pending_ += piece; }
  void Finish() { finished_ = true; }
  // The next whole clause, trimmed; or empty.
  std::string Next();
  size_t pending_bytes() const { return pending_.size() - taken_; }

 private:
  size_t FindEnd() const;

  std::string pending_;
  size_t taken_ = 0;  // of pending_
  bool clauses_;
  bool finished_ = false;
  bool first_ = true;
};

}  // namespace portico::pipeline
