#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/utf8.h"
#include "tokenizer/regex.h"
#include "tokenizer/regex_classes.h"

namespace portico::tokenizer {
namespace {

class Translator {
 public:
  Translator(std::string_view pattern, Regex::Syntax syntax) : pattern_(pattern), syntax_(syntax) {}

  StatusOr<std::string> Run() {
    while (at_ < pattern_.size()) PORTICO_RETURN_IF_ERROR(Item());
    return std::move(out_);
  }

 private:
  Status Refuse(std::string_view what) const {
    return Error(StatusCode::kUnimplemented, "the pattern '" + std::string(pattern_) + "' uses " +
                                                 std::string(what) + ", which is not supported");
  }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }

  Status Item() {
    char c = pattern_[at_];
    switch (c) {
      case '\\':
        atom_ = out_.size();
        return Escape(/*in_class=*/false);
      case '[':
        atom_ = out_.size();
        return Class();
      case '(':
        return Open();
      case ')':
        if (groups_.empty()) return Refuse("an unbalanced ')'");
        atom_ = groups_.back();
        groups_.pop_back();
        break;
      case '{':
        return Interval();
      case '*':
      case '+':
      case '?':
      case '|':
      case '^':
        break;
      case '$':
        // Without lines $ is the very end, not also before a last line feed.
        out_.append(syntax_ == Regex::Syntax::kFancyRegex ? "\\z" : "$");
        ++at_;
        return OkStatus();
      default:
        atom_ = out_.size();
        return Literal();
    }
    out_.push_back(c);
    ++at_;
    return OkStatus();
  }

  Status Literal() {
    size_t length = Utf8SequenceLength(pattern_.substr(at_));
    if (length == 0) return Refuse("bytes that are not UTF-8");
    out_.append(pattern_.substr(at_, length));
    at_ += length;
    return OkStatus();
  }

  Status Open() {
    groups_.push_back(out_.size());
    if (Peek(1) != '?') {
      out_.append("(?:");  // no pattern here refers back to a group
      ++at_;
      return OkStatus();
    }
    size_t end = at_ + 2;
    for (std::string_view known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (pattern_.substr(at_, known.size()) == known) {
        out_.append(known);
        at_ += known.size();
        return OkStatus();
      }
    }
    std::string flags;
    while (end < pattern_.size() && pattern_[end] != ':' && pattern_[end] != ')') {
      char f = pattern_[end++];
      bool multi = syntax_ == Regex::Syntax::kOniguruma && f == 'm';
      if (f != 'i' && f != '-' && f != 'x' && !multi && f != 's') {
        return Refuse("the group '" + std::string(pattern_.substr(at_, 4)) + "'");
      }
      flags.push_back(multi ? 's' : f);  // Ruby's m lets the dot match line feeds
    }
    if (end >= pattern_.size()) return Refuse("an unfinished group");
    if (pattern_[end] == ')') groups_.pop_back();
    out_.append("(?" + flags);
    out_.push_back(pattern_[end]);
    at_ = end + 1;
    return OkStatus();
  }

  Status Interval() {
    size_t end = at_ + 1;
    bool digits = false;
    bool plain = true;
    while (end < pattern_.size() && pattern_[end] != '}') {
      char c = pattern_[end++];
      digits = digits || (c >= '0' && c <= '9');
      plain = plain && ((c >= '0' && c <= '9') || c == ',');
    }
    if (end >= pattern_.size() || !digits || !plain) {
      out_.append("\\{");  // a brace that is no interval is itself
      ++at_;
      return OkStatus();
    }
    std::string interval(pattern_.substr(at_, end + 1 - at_));
    if (interval[1] == ',') interval.insert(1, "0");
    at_ = end + 1;
    out_.append(interval);
    if (Peek() == '+' && syntax_ == Regex::Syntax::kOniguruma) {
      out_.insert(atom_, "(?:");
      out_.append(")+");
      ++at_;
    }
    return OkStatus();
  }

  // A class escape or an escaped character, at the backslash.
  Status Escape(bool in_class) {
    char c = Peek(1);
    if (c == '\0') return Refuse("a backslash at its end");
    if (c == 'p' || c == 'P') return Property(in_class);
    CharacterTest named;
    switch (c | 32) {
      case 's':
        named = IsSpaceCharacter;
        break;
      case 'd':
        named = PropertyTest("Nd");
        break;
      case 'w':
        named = Word(in_class);
        break;
      default:
        break;
    }
    if (named) {
      at_ += 2;
      Members(named, c >= 'A' && c <= 'Z', in_class);
      return OkStatus();
    }
    if (c == 'h' && syntax_ == Regex::Syntax::kOniguruma) {
      out_.append(in_class ? "0-9a-fA-F" : "[0-9a-fA-F]");
      at_ += 2;
      return OkStatus();
    }
    if (c == 'u') return CodePoint();
    bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
    constexpr std::string_view kSame = "nrtfaexX";
    if (!in_class && (c == 'b' || c == 'B')) {
      const char* word = "(?:(?<=[%])(?![%])|(?<![%])(?=[%]))";
      const char* inside = "(?:(?<=[%])(?=[%])|(?<![%])(?![%]))";
      std::string members = RangesOf(IsWord);
      for (const char* i = c == 'b' ? word : inside; *i != '\0'; ++i) {
        *i == '%' ? out_.append(members) : (out_.push_back(*i), out_);
      }
      at_ += 2;
      return OkStatus();
    }
    if (!in_class && (c == 'A' || c == 'z' || c == 'Z')) {
      out_.append(pattern_.substr(at_, 2));
      at_ += 2;
      return OkStatus();
    }
    if (letter && kSame.find(c) == std::string_view::npos && c != 'v') {
      return Refuse("\\" + std::string(1, c));
    }
    if (c >= '1' && c <= '9') return Refuse("a back-reference");
    if (c == 'v') {
      out_.append("\\x0B");
      at_ += 2;
      return OkStatus();
    }
    size_t length = Utf8SequenceLength(pattern_.substr(at_ + 1));
    if (length == 0) return Refuse("bytes that are not UTF-8");
    out_.append(pattern_.substr(at_, 1 + length));
    at_ += 1 + length;
    return OkStatus();
  }

  Status CodePoint() {
    if (at_ + 6 > pattern_.size()) return Refuse("an unfinished \\u");
    out_.append("\\x{");
    out_.append(pattern_.substr(at_ + 2, 4));
    out_.push_back('}');
    at_ += 6;
    return OkStatus();
  }

  Status Property(bool in_class) {
    bool negated = Peek(1) == 'P';
    std::string_view name;
    size_t next = 0;
    if (Peek(2) == '{') {
      size_t end = pattern_.find('}', at_);
      if (end == std::string_view::npos) return Refuse("an unfinished \\p{");
      name = pattern_.substr(at_ + 3, end - at_ - 3);
      next = end + 1;
    } else if (syntax_ == Regex::Syntax::kFancyRegex && Peek(2) != '\0') {
      name = pattern_.substr(at_ + 2, 1);
      next = at_ + 3;
    } else {
      return Refuse("\\p without braces");
    }
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    at_ = next;
    if (CharacterTest named = PropertyTest(name)) {
      if (name == "Word" || name == "word") named = Word(in_class);
      Members(named, negated, in_class);
    } else {
      out_.append(negated ? "\\P{" : "\\p{").append(name).push_back('}');  // a script
    }
    return OkStatus();
  }

  CharacterTest Word(bool in_class) const {
    if (syntax_ == Regex::Syntax::kFancyRegex) return IsRegexWord;
    return in_class ? IsWordInClass : IsWord;
  }

  void Members(const CharacterTest& test, bool negated, bool in_class) {
    std::string members =
        negated && in_class ? RangesOf([&](uint32_t c) { return !test(c); }) : RangesOf(test);
    if (in_class) {
      out_.append(members);
    } else {
      out_.append(negated ? "[^" : "[").append(members).push_back(']');
    }
  }

  // [a&&b]: a character of a that is one of b.
  Status Class() {
    size_t begin = out_.size();
    bool negated = Peek(1) == '^';
    PORTICO_RETURN_IF_ERROR(ClassMembers());
    while (Peek() == '&') {
      if (negated) return Refuse("a negated intersection of classes");
      at_ += 2;
      std::string left = out_.substr(begin);
      out_.resize(begin);
      if (Peek() == '[' && Peek(1) != ':') {
        PORTICO_RETURN_IF_ERROR(Class());
        if (Peek() != '&' && Peek() != ']') return Refuse("a class inside a class");
        if (Peek() == ']') ++at_;
      } else {
        return Refuse("an intersection with what is no class");
      }
      out_.insert(begin, "(?:(?=");
      out_.append(")" + left + ")");
    }
    return OkStatus();
  }

  // From the bracket to the end of the class, or to the && in it, where the class is closed.
  Status ClassMembers() {
    out_.push_back('[');
    ++at_;
    if (Peek() == '^') {
      out_.push_back('^');
      ++at_;
    }
    bool first = true;
    while (at_ < pattern_.size() && (pattern_[at_] != ']' || first)) {
      char c = pattern_[at_];
      if (c == '\\') {
        PORTICO_RETURN_IF_ERROR(Escape(/*in_class=*/true));
      } else if (c == '[') {
        PORTICO_RETURN_IF_ERROR(Posix());
      } else if (c == '&' && Peek(1) == '&') {
        out_.push_back(']');
        return OkStatus();
      } else if (c == ']') {
        out_.append("\\]");
        ++at_;
      } else {
        PORTICO_RETURN_IF_ERROR(Literal());
      }
      first = false;
    }
    if (at_ >= pattern_.size()) return Refuse("an unfinished class");
    out_.push_back(']');
    ++at_;
    return OkStatus();
  }

  Status Posix() {
    size_t end = pattern_.find(":]", at_);
    if (Peek(1) != ':' || end == std::string_view::npos) return Refuse("a class inside a class");
    std::string_view name = pattern_.substr(at_ + 2, end - at_ - 2);
    bool negated = !name.empty() && name[0] == '^';
    if (negated) name.remove_prefix(1);
    CharacterTest named = PosixTest(name);
    if (!named) return Refuse("[:" + std::string(name) + ":]");
    at_ = end + 2;
    Members(named, negated, /*in_class=*/true);
    return OkStatus();
  }

  std::string_view pattern_;
  Regex::Syntax syntax_;
  size_t at_ = 0;
  size_t atom_ = 0;  // where the last repeatable thing begins in out_
  std::vector<size_t> groups_;
  std::string out_;
};

}  // namespace

StatusOr<std::string> TranslatePattern(std::string_view pattern, Regex::Syntax syntax) {
  return Translator(pattern, syntax).Run();
}

}  // namespace portico::tokenizer
