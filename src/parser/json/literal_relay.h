// One JSON value, or one Python literal, passed on as JSON while it arrives.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace portico::parser {

// Text that is JSON is passed on byte for byte. What models write beside JSON becomes JSON: Python's strings, True,
// False, None and tuples, raw control characters in strings, unknown escapes, a comma before a closing bracket. At text
// that is neither, what follows becomes one JSON string in the place where the value stopped making sense, so that no
// byte is lost and, after Close(), the output is one JSON value whatever came in.
//
// The output does not depend on how the input was cut. Memory: the nesting, and one number or word.
class LiteralRelay {
 public:
  static constexpr size_t kMaxDepth = 100'000;
  static constexpr size_t kMaxWord = 4096;  // bytes of a number or word

  struct Options {
    bool python = false;  // words and escapes are Python's where the two languages differ
    // A quote within a string that nothing of Python's can follow is a part of it: `'it's'`, `'sed -n '1,5p' f'`.
    bool inner_quotes = false;
  };

  explicit LiteralRelay(Options options) : options_(options) {}
  LiteralRelay() = default;

  void Reset() { *this = LiteralRelay(options_); }

  // Reads as much of `text` as belongs to the value and appends to `out`. Returns how much that was: less than all
  // means that the value is done(), has just become broken() or got has_inner_quotes(), or, with inner_quotes and text to come (`final` is false),
  // that what follows a quote must be known first. A number or word that stands alone ends before the byte that ends it.
  size_t Push(std::string_view text, std::string* out, bool final = true);
  // The text of the value ended here: closes what is open.
  void Close(std::string* out);

  // The text was cut off here: what waits for more is passed on as it is.
  void Cut(std::string* out);

  // A whole value was read.
  bool done() const { return done_; }
  // Nothing but white space came so far.
  bool empty() const { return !started_; }
  // It is no JSON and no Python; the rest is read as text.
  bool broken() const { return broken_; }
  // A word that neither language has became a string.
  bool guessed() const { return guessed_; }
  // Within quotes.
  bool in_string() const { return quote_ != 0; }
  // Within quotes, behind a quote that did not end them.
  bool has_inner_quotes() const { return quote_ != 0 && quoted_; }

 private:
  enum class Expect { kValue, kValueOrEnd, kKeyOrEnd, kColon, kCommaOrEnd };

  size_t PushString(std::string_view text, std::string* out, bool final);
  enum class Quote { kEnds, kInner, kUnknown };
  // What the quote is in front of `behind`.
  Quote QuoteBefore(std::string_view behind, bool final) const;
  void PushEscape(char c, std::string* out);
  void EndEscape(std::string* out);
  // The first half of a surrogate pair has no second one.
  void FlushHalf(std::string* out);
  // False: `c` ends the value, and does not belong to it.
  bool PushOutside(char c, std::string* out);
  void PushWord(std::string* out);
  void Open(char c, std::string* out);
  bool Shut(char c, std::string* out);
  void Separate(std::string* out);
  void AfterValue();
  void Break(char c, std::string* out);
  bool in_object() const { return !open_.empty() && open_.back() == '{'; }

  Options options_;
  std::vector<char> open_;
  Expect expect_ = Expect::kValue;
  bool started_ = false;
  bool done_ = false;
  bool broken_ = false;
  bool guessed_ = false;
  bool comma_ = false;  // one was read, and not yet written
  bool string_is_key_ = false;
  char quote_ = 0;
  bool quoted_ = false;   // a quote was a part of this string
  int inner_quotes_ = 0;  // such quotes, without apostrophes
  char before_ = 0;       // the last byte of this string
  std::string escape_;    // an escape so far, with its backslash
  std::string half_;      // the first escape of a surrogate pair, which waits for the second
  std::string word_;
  std::string space_;  // after the comma
};

// Whether `text` is one JSON value, white space around it allowed.
bool IsJson(std::string_view text);

}  // namespace portico::parser
