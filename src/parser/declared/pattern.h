// A regular expression that is looked for in a stream.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace portico::parser {

// Immutable, for any number of threads. Perl's syntax, over bytes, where `.` is any byte.
class Pattern {
 public:
  enum class Kind {
    kAbsent,   // nothing matches or begins to
    kPartial,  // more text is needed to say
    kFound,
  };
  struct Match {
    Kind kind = Kind::kAbsent;
    size_t begin = 0;  // of what was found or may begin; the text's length if kAbsent
    size_t length = 0;
    // By the order of groups(); what did not take part is empty.
    std::vector<std::string_view> groups = {};
  };

  // INVALID_ARGUMENT for what is no expression, or says something that bytes cannot.
  static StatusOr<Pattern> Make(std::string_view expression);
  // One of these texts; the longest wins.
  static StatusOr<Pattern> OneOf(std::vector<std::string> literals);

  // Names of groups.
  const std::vector<std::string>& groups() const { return groups_; }
  // The first match from `from` on. What is found does not depend on text that is still to come. `final`: nothing
  // follows, so kPartial is never the answer. An expression that takes too many steps has no match. A match without bytes
  // is none, unless `ahead`: then it is one of an expression that looks ahead for something.
  Match Find(std::string_view text, bool final, size_t from = 0, bool ahead = false) const;

 private:
  struct Code;

  std::shared_ptr<const Code> code_;
  std::vector<std::string> groups_;
  std::vector<int> numbers_;  // of groups_
  bool needs_text_ = true;    // it does not match the empty text
};

}  // namespace portico::parser
