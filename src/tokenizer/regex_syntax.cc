#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/utf8.h"
#include "tokenizer/regex.h"
#include "tokenizer/regex_class_parser.h"

namespace portico::tokenizer {
namespace {

class Translator {
 public:
  Translator(std::string_view pattern, Regex::Syntax syntax, bool share_classes)
      : pattern_(pattern),
        onig_(syntax == Regex::Syntax::kOniguruma),
        syntax_(syntax),
        share_classes_(share_classes) {}

  StatusOr<std::string> Run() {
    while (at_ < pattern_.size()) {
      PORTICO_RETURN_IF_ERROR(Item());
      if (classes_ > kMaxClasses || out_.size() + shared_size_ > kMaxSize) {
        return Error(StatusCode::kResourceExhausted,
                     PatternText(pattern_) + " has classes of too many characters");
      }
    }
    CloseFlagGroups();
    return Definitions() + std::move(out_);
  }

 private:
  // A pattern of any use has a few dozens.
  static constexpr size_t kMaxClasses = 2000;
  static constexpr size_t kMaxSize = size_t{4} << 20;
  // Shorter classes are written where they stand.
  static constexpr size_t kMinShared = 256;

  struct Group {
    size_t begin;       // in out_
    bool flags_alone;   // of "(?i)": it ends where the group around it does
    bool ignored_case;  // before it, and so again behind it
  };

  Status Refuse(std::string_view what) const { return RefusePattern(pattern_, what); }
  char Peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  bool Take(std::string_view text) {
    if (!pattern_.substr(at_).starts_with(text)) return false;
    at_ += text.size();
    return true;
  }

  // What is written from here on can be repeated.
  void BeginAtom() {
    atom_ = out_.size();
    repeated_ = false;
  }

  Status Item() {
    char c = pattern_[at_];
    switch (c) {
      case '\\':
        BeginAtom();
        return Escape();
      case '[': {
        BeginAtom();
        PORTICO_ASSIGN_OR_RETURN(CharacterClass read, ParseClass(pattern_, syntax_, &at_));
        out_.append(Shared(InBrackets(read.members.ToClassMembers(), read.negated), ignores_case_));
        return OkStatus();
      }
      case '(':
        return Open();
      case ')':
        return Close();
      case '{':
        return Interval();
      case '*':
      case '+':
      case '?':
        Repeat(std::string(1, c));
        ++at_;
        if (Peek() == '?' || Peek() == '+') out_.push_back(pattern_[at_++]);
        return OkStatus();
      case '$':
        BeginAtom();
        // Without lines $ is the very end, not also before a last line feed.
        out_.append(onig_ ? "$" : "\\z");
        ++at_;
        return OkStatus();
      case '|':
      case '^':
        BeginAtom();
        out_.push_back(c);
        ++at_;
        return OkStatus();
      default:
        BeginAtom();
        return Literal();
    }
  }

  Status Literal() {
    size_t length = Utf8SequenceLength(pattern_.substr(at_));
    if (length == 0) return Refuse("bytes that are not UTF-8");
    out_.append(pattern_.substr(at_, length));
    at_ += length;
    return OkStatus();
  }

  void CloseFlagGroups() {
    while (!groups_.empty() && groups_.back().flags_alone) {
      out_.push_back(')');
      ignores_case_ = groups_.back().ignored_case;
      groups_.pop_back();
    }
  }

  Status Close() {
    CloseFlagGroups();
    if (groups_.empty()) return Refuse("an unbalanced ')'");
    atom_ = groups_.back().begin;
    repeated_ = false;
    ignores_case_ = groups_.back().ignored_case;
    groups_.pop_back();
    out_.push_back(')');
    ++at_;
    return OkStatus();
  }

  Status Open() {
    if (Take("(?#")) {
      size_t end = pattern_.find(')', at_);
      if (end == std::string_view::npos) return Refuse("an unfinished comment");
      at_ = end + 1;
      return OkStatus();
    }
    groups_.push_back({out_.size(), false, ignores_case_});
    for (std::string_view known : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>"}) {
      if (Take(known)) {
        out_.append(known);
        return OkStatus();
      }
    }
    if (!onig_ && Take("(?P<")) return NamedGroup('>');
    if (Take("(?<")) return NamedGroup('>');
    if (onig_ && Take("(?'")) return NamedGroup('\'');
    if (Peek(1) == '?') return Flags();
    ++at_;
    out_.append("(?:");  // no pattern here refers back to a group
    return OkStatus();
  }

  Status NamedGroup(char end) {
    while (at_ < pattern_.size() && pattern_[at_] != end) ++at_;
    if (at_ >= pattern_.size()) return Refuse("an unfinished group");
    ++at_;
    out_.append("(?:");
    return OkStatus();
  }

  Status Flags() {
    const size_t begin = at_;
    at_ += 2;
    std::string flags;
    bool on = true;
    for (char f = Peek(); f != ':' && f != ')'; f = Peek()) {
      const bool known = f == 'i' || f == '-' || f == 'x' || f == (onig_ ? 'm' : 's');
      if (!known) return Refuse("the group '" + std::string(pattern_.substr(begin, 4)) + "'");
      on = on && f != '-';
      if (f == 'i') ignores_case_ = on;
      flags.push_back(f == 'm' ? 's' : f);  // Ruby's m lets the dot match line feeds
      ++at_;
    }
    const bool alone = pattern_[at_++] == ')';
    if (alone && !onig_) {
      groups_.pop_back();
      out_.append("(?" + flags + ")");
      return OkStatus();
    }
    // In Oniguruma what follows "(?i)" is one group up to the end of the one around it: a(?i)b|c is a(?i:b|c).
    groups_.back().flags_alone = alone;
    out_.append("(?" + flags + ":");
    return OkStatus();
  }

  // Also of what is repeated already: "a**".
  void Repeat(std::string_view quantifier) {
    if (repeated_) Enclose();
    out_.append(quantifier);
    repeated_ = true;
  }

  void Enclose() {
    out_.insert(atom_, "(?:");
    out_.push_back(')');
  }

  Status Interval() {
    size_t end = at_ + 1;
    bool digits = false;
    bool plain = true;
    bool range = false;
    while (end < pattern_.size() && pattern_[end] != '}') {
      char c = pattern_[end++];
      digits = digits || (c >= '0' && c <= '9');
      range = range || c == ',';
      plain = plain && ((c >= '0' && c <= '9') || c == ',');
    }
    if (end >= pattern_.size() || !digits || !plain) {
      BeginAtom();
      out_.append("\\{");  // a brace that is no interval is itself
      ++at_;
      return OkStatus();
    }
    std::string interval(pattern_.substr(at_, end + 1 - at_));
    if (interval[1] == ',') interval.insert(1, "0");
    at_ = end + 1;
    Repeat(interval);
    const char next = Peek();
    if (next != '?' && next != '+') return OkStatus();
    // Oniguruma repeats what {n,m} repeated with a plus, and makes it optional with a question mark behind {n}.
    if (onig_ && (next == '+' || !range)) Enclose();
    out_.push_back(next);
    ++at_;
    return OkStatus();
  }

  // At the backslash, outside of classes.
  Status Escape() {
    const char c = Peek(1);
    if (c == 'p' || c == 'P') {
      PORTICO_ASSIGN_OR_RETURN(CharacterProperty property, ParseProperty(pattern_, syntax_, &at_));
      AppendAsItIs(*property.characters, property.negated);
      return OkStatus();
    }
    const char lower = static_cast<char>(c | 32);
    if (const NamedCharacters* named = LetterClass(lower, syntax_, /*in_class=*/false)) {
      at_ += 2;
      AppendAsItIs(*named, lower != c);
      return OkStatus();
    }
    if (std::string_view same = Same(c); !same.empty()) {
      out_.append(same);
      at_ += 2;
      return OkStatus();
    }
    if (c == 'b' || c == 'B') {
      WordBorder(c == 'b');
      at_ += 2;
      return OkStatus();
    }
    PORTICO_ASSIGN_OR_RETURN(uint32_t character,
                             ParseCharacter(pattern_, syntax_, /*in_class=*/false, &at_));
    out_.append(CodePoints::One(character).ToClassMembers());
    return OkStatus();
  }

  // Escapes that PCRE2 has, too, or can say in another way; nothing for others.
  std::string_view Same(char c) const {
    switch (c) {
      case 'A':
        return "\\A";
      case 'z':
        return "\\z";
      case 'Z':
        return "\\Z";
      case 'X':
        return "\\X";
      case 'R':
        return onig_ ? "(?>\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])" : "";
      case 'N':
        return onig_ ? "[^\\n]" : "";
      case 'O':
        return onig_ ? "(?s:.)" : "";
      default:
        return "";
    }
  }

  void WordBorder(bool is_border) {
    const char* border = "(?:(?<=%)(?!%)|(?<!%)(?=%))";
    const char* inside = "(?:(?<=%)(?=%)|(?<!%)(?!%))";
    const NamedCharacters* word = LetterClass('w', syntax_, /*in_class=*/false);
    for (const char* i = is_border ? border : inside; *i != '\0'; ++i) {
      if (*i == '%') {
        AppendAsItIs(*word, /*negated=*/false);
      } else {
        out_.push_back(*i);
      }
    }
  }

  // Oniguruma never ignores case in \p{Lu}, \w and the like outside of brackets.
  void AppendAsItIs(const NamedCharacters& named, bool negated) {
    const bool ignores_case = ignores_case_ && !onig_;
    std::string text = InBrackets(named.text, negated);
    if (ignores_case != ignores_case_) text = "(?-i:" + std::move(text) + ")";
    out_.append(Shared(std::move(text), ignores_case));
  }

  // A call of the class where it is long and classes are shared, else the class.
  std::string Shared(std::string text, bool ignores_case) {
    ++classes_;
    if (!share_classes_ || text.size() < kMinShared) return text;
    if (ignores_case) text = "(?i:" + std::move(text) + ")";
    const auto [found, added] = shared_.try_emplace(std::move(text), shared_.size());
    if (added) shared_size_ += found->first.size();
    return "(?&c" + std::to_string(found->second) + ")";
  }

  std::string Definitions() const {
    if (shared_.empty()) return {};
    std::string out = "(?(DEFINE)";
    for (const auto& [text, number] : shared_) {
      out += "(?<c" + std::to_string(number) + ">" + text + ")";
    }
    return out + ")";
  }

  static std::string InBrackets(const std::string& members, bool negated) {
    if (members.empty()) return negated ? "(?s:.)" : "(?!)";
    return (negated ? "[^" : "[") + members + "]";
  }

  std::string_view pattern_;
  bool onig_;
  Regex::Syntax syntax_;
  size_t at_ = 0;
  size_t atom_ = 0;            // where the last repeatable thing begins in out_
  bool repeated_ = false;      // it has a quantifier
  bool ignores_case_ = false;  // here
  std::vector<Group> groups_;
  bool share_classes_;
  size_t classes_ = 0;
  std::map<std::string, size_t> shared_;  // and their numbers
  size_t shared_size_ = 0;
  std::string out_;
};

}  // namespace

StatusOr<std::string> TranslatePattern(std::string_view pattern, Regex::Syntax syntax,
                                       bool share_classes) {
  return Translator(pattern, syntax, share_classes).Run();
}

}  // namespace portico::tokenizer
