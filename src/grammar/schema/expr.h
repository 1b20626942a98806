// A grammar's right-hand sides as trees, so that what can never match is cut out before anything is printed.
//
// Used by one thread. Rules are named by numbers; rule 0 is the root.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace portico::grammar {

// Code points, first to last; ascending and apart, unless said otherwise.
using CharRanges = std::vector<std::pair<char32_t, char32_t>>;

// What a count counts.
enum class CountedChars {
  kJson,        // characters of a JSON string: an escape is one
  kCodePoints,  // of plain text
};

struct Expr {
  enum class Kind { kText, kClass, kSequence, kChoice, kRule, kRepeat, kJsonChars };

  Kind kind = Kind::kSequence;  // without parts: the empty text
  std::string text;             // kText: UTF-8
  CharRanges ranges;            // kClass; never empty
  std::vector<Expr> parts;      // kRepeat has one
  int32_t rule = -1;            // kRule
  int64_t min = 0;              // kRepeat
  int64_t max = -1;             // kRepeat; -1: no bound
  bool one_char = false;        // of a pattern: matches one character, whose escape may be several
  CharRanges chars;             // one_char: which
  bool searched = false;        // kSequence of a pattern: one automaton where kSearchStates allow

  static Expr Empty() { return {}; }
  // Matches nothing.
  static Expr Never();
  static Expr Text(std::string_view utf8);
  static Expr Class(CharRanges ranges);
  static Expr Sequence(std::vector<Expr> parts);
  static Expr Choice(std::vector<Expr> parts);
  static Expr Rule(int32_t rule);
  static Expr Repeat(Expr part, int64_t min, int64_t max);
  static Expr Optional(Expr part);
  // Any number of characters of a JSON string, each as AnyJsonChar() has it, as one automaton. It must be all of a rule.
  static Expr JsonChars();

  friend bool operator==(const Expr&, const Expr&) = default;
};

class RuleSet {
 public:
  // A rule that matches nothing until it is set.
  int32_t Add(std::string_view name);
  // A rule that has at least `min_chars` characters of a JSON string, and that ends at the latest where it can end once it has
  // `max_chars`; -1: no bound.
  int32_t AddCounted(std::string_view name, int64_t min_chars, int64_t max_chars);
  // The rule that has so many times `one_char` as one automaton. `ahead` has what the characters behind it may be, as far as they are
  // known; no set or an empty one: counted_piece.h. Equal ones are one rule.
  int32_t AddCounted(std::string_view name, int64_t min_chars, int64_t max_chars,
                     CountedChars chars, const Expr& one_char,
                     const std::vector<CharRanges>& ahead);
  void Set(int32_t rule, Expr body);
  // What always follows the rule, in EBNF, or a longer text that begins so: with it the core tells beforehand which tokens may reach
  // beyond the rule's end, instead of trying them at each mask. Where the rule occurs once, and not as the last part of a rule, the
  // core relies on it to follow in full.
  void SetFollowing(int32_t rule, std::string_view ebnf);
  int32_t size() const { return static_cast<int32_t>(rules_.size()); }
  // Where nothing matches: the rules from the root to one that makes it so, each a part of the one before. Else empty.
  std::vector<int32_t> Unsatisfied();

  // EBNF as xgrammar reads it, of what the root reaches. INVALID_ARGUMENT without a field: nothing matches, or a rule
  // may begin with itself. `escape_less`: of JSON, where `<` stands as \u003c only.
  StatusOr<std::string> Print(bool escape_less = false);

 private:
  struct RuleBody {
    std::string name;
    std::string counts;  // its attributes
    Expr body = Expr::Never();
    std::string following;
    bool is_automaton = false;
    std::vector<CharRanges> ahead;
  };

  void FindProductive();
  int32_t UnsatisfiedIn(const Expr& expr) const;
  bool IsProductive(const Expr& expr) const;
  void Prune(Expr* expr) const;
  void Reach(const Expr& expr, std::vector<int32_t>* stack);
  Status CheckNoLeftCycle() const;
  bool FirstRules(const Expr& expr, const std::vector<bool>& nullable,
                  std::vector<int32_t>* first) const;
  void PrintExpr(const Expr& expr, bool nested, std::string* out);
  std::string Group(const std::string& regex);
  void PrintRegex(const std::string& regex, std::string* out) const;
  void PrintAhead(const std::vector<CharRanges>& ahead, std::string* out) const;
  // Prints a repeated group as an automaton; false: it is none.
  bool PrintGroup(const Expr& repeat, std::string* out);

  std::vector<RuleBody> rules_;
  std::vector<bool> productive_;
  std::vector<bool> reached_;
  std::vector<std::string> groups_;  // regular expressions of the core
  std::map<std::string, int32_t> pieces_;
  bool escape_less_ = false;
};

}  // namespace portico::grammar
