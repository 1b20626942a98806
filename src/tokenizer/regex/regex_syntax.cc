#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/utf8.h"
#include "tokenizer/regex/case_folds.h"
#include "tokenizer/regex/regex.h"
#include "tokenizer/regex/regex_class_parser.h"
#include "tokenizer/regex/regex_quantifiers.h"
#include "tokenizer/regex/regex_shared_classes.h"

namespace portico::tokenizer {
namespace {

class Translator {
 public:
  Translator(std::string_view pattern, Regex::Syntax syntax, bool share_classes)
      : in_{pattern, syntax}, onig_(in_.is_oniguruma()), classes_(share_classes) {}

  StatusOr<std::string> Run() {
    while (!in_.AtEnd()) {
      PORTICO_RETURN_IF_ERROR(Item());
      if (classes_.count() > kMaxClasses || out_.size() + classes_.size() > kMaxSize) {
        return Error(StatusCode::kResourceExhausted,
                     PatternText(in_.pattern) + " has classes of too many characters");
      }
    }
    CloseFlagGroups();
    // PCRE2 10.42's JIT misses matches of (?>.+?)[a-z] when it looks for where one may begin.
    const std::string_view options = lazy_ && keeps_ ? "(*NO_START_OPT)" : "";
    return std::string(options) + classes_.Definitions() + std::move(out_);
  }

 private:
  // A pattern of any use has a few dozens.
  static constexpr size_t kMaxClasses = 2000;
  static constexpr size_t kMaxSize = size_t{4} << 20;
  // PCRE2's own limit of parentheses.
  static constexpr size_t kMaxEnclosed = 250;

  struct Group {
    enum Kind {
      kPlain,       // it only groups
      kCapture,     // so, too, as nothing refers back to it
      kFlagsAlone,  // "(?i)": it ends where the group around it does
      kLook,
      kOther,
    };
    Kind kind;
    size_t begin;             // in out_
    size_t inside;            // where it begins
    size_t alternative;       // where the last of its alternatives does
    bool ignored_case;        // before it, and so again behind it
    bool has_anchor = false;  // an alternative of it is an anchor and nothing else
  };

  // What was written last, for a quantifier behind it.
  enum class Last { kNothing, kAnchor, kAtom, kRepeated };

  // What is written from here on.
  void Begin(Last what) {
    last_ = what;
    last_begin_ = out_.size();
  }

  Status Item() {
    char c = in_.Peek();
    switch (c) {
      case '\\':
        return Escape();
      case '[': {
        Begin(Last::kAtom);
        PORTICO_ASSIGN_OR_RETURN(CharacterClass read, ParseClass(&in_));
        AppendSet(read.members, read.negated);
        return OkStatus();
      }
      case '(':
        return Open();
      case ')':
        return Close();
      case '{':
      case '*':
      case '+':
      case '?':
        if (std::optional<Quantifier> quantifier = ReadQuantifier(&in_)) return Repeat(*quantifier);
        Begin(Last::kAtom);
        out_.append("\\{");
        ++in_.at;
        return OkStatus();
      case '$':
        Begin(Last::kAnchor);
        // Without lines $ is the very end, not also before a last line feed.
        out_.append(onig_ ? "$" : "\\z");
        ++in_.at;
        return OkStatus();
      case '^':
        Begin(Last::kAnchor);
        out_.push_back(c);
        ++in_.at;
        return OkStatus();
      case '|':
        EndAlternative();
        out_.push_back(c);
        ++in_.at;
        Begin(Last::kNothing);
        if (!groups_.empty()) groups_.back().alternative = out_.size();
        return OkStatus();
      default:
        Begin(Last::kAtom);
        return Literal();
    }
  }

  Status Literal() {
    const std::string_view character = in_.TakeCharacter();
    if (character.empty()) return in_.Refuse("bytes that are not UTF-8");
    AppendCharacter(Utf8Decode(character, character.size()), character);
    return OkStatus();
  }

  // `text`: in PCRE2's syntax.
  void AppendCharacter(uint32_t character, std::string_view text) {
    const CodePoints set = CodePoints::One(character);
    if (ignores_case_ && (HasNewerCase(character) || !FoldsOfSeveral(set).empty())) {
      AppendSet(set, /*negated=*/false);
    } else {
      out_.append(text);
    }
  }

  void AppendSet(const CodePoints& set, bool negated) {
    const CodePoints all = ignores_case_ ? WithNewerCase(set) : set;
    std::string text = InBrackets(all.ToClassMembers(), negated);
    if (onig_ && ignores_case_ && !negated) {
      // Oniguruma's ß matches "ss" then.
      const std::string folds = FoldsOfSeveral(set);
      if (!folds.empty()) text = "(?:" + std::move(text) + "|" + folds + ")";
    }
    out_.append(classes_.Use(std::move(text), ignores_case_));
  }

  void CloseFlagGroups() {
    while (!groups_.empty() && groups_.back().kind == Group::kFlagsAlone) CloseGroup();
  }

  void EndAlternative() {
    if (groups_.empty()) return;
    Group& group = groups_.back();
    const bool is_anchor = last_ == Last::kAnchor && last_begin_ == group.alternative;
    group.has_anchor = group.has_anchor || is_anchor;
  }

  void CloseGroup() {
    EndAlternative();
    const Group& group = groups_.back();
    // A group of nothing but something repeated is that: (a*)+ repeats a* again.
    const bool only_groups = group.kind == Group::kPlain || group.kind == Group::kCapture;
    if (last_ != Last::kRepeated || !only_groups || last_begin_ != group.inside) {
      last_ = Last::kAtom;
    }
    const bool is_anchor = group.kind == Group::kPlain && group.has_anchor;
    if (group.kind == Group::kLook || is_anchor) last_ = Last::kAnchor;
    last_begin_ = group.begin;
    ignores_case_ = group.ignored_case;
    out_.push_back(')');
    groups_.pop_back();
  }

  Status Close() {
    CloseFlagGroups();
    if (groups_.empty()) return in_.Refuse("an unbalanced ')'");
    CloseGroup();
    ++in_.at;
    return OkStatus();
  }

  Status Open() {
    if (in_.Take("(?#")) {
      size_t end = in_.pattern.find(')', in_.at);
      if (end == std::string_view::npos) return in_.Refuse("an unfinished comment");
      in_.at = end + 1;
      return OkStatus();
    }
    for (std::string_view look : {"(?=", "(?!", "(?<=", "(?<!"}) {
      if (in_.Take(look)) return OpenGroup(Group::kLook, look);
    }
    if (in_.Take("(?>")) {
      keeps_ = true;
      return OpenGroup(Group::kOther, "(?>");
    }
    if (in_.Take("(?:")) return OpenGroup(Group::kPlain, "(?:");
    if (!onig_ && in_.Take("(?P<")) return NamedGroup('>');
    if (in_.Take("(?<")) return NamedGroup('>');
    if (onig_ && in_.Take("(?'")) return NamedGroup('\'');
    if (in_.Peek(1) == '?') return Flags();
    ++in_.at;
    return OpenGroup(Group::kCapture, "(?:");  // no pattern here refers back to a group
  }

  Status OpenGroup(Group::Kind kind, std::string_view text) {
    const size_t begin = out_.size();
    out_.append(text);
    groups_.push_back({kind, begin, out_.size(), out_.size(), ignores_case_});
    Begin(Last::kNothing);
    return OkStatus();
  }

  Status NamedGroup(char end) {
    while (!in_.AtEnd() && in_.pattern[in_.at] != end) ++in_.at;
    if (in_.AtEnd()) return in_.Refuse("an unfinished group");
    ++in_.at;
    return OpenGroup(Group::kCapture, "(?:");
  }

  Status Flags() {
    const size_t begin = in_.at;
    in_.at += 2;
    std::string flags;
    bool on = true;
    bool ignores_case = ignores_case_;
    for (char f = in_.Peek(); f != ':' && f != ')'; f = in_.Peek()) {
      const bool known = f == 'i' || f == '-' || f == 'x' || f == (onig_ ? 'm' : 's');
      if (!known) {
        return in_.Refuse("the group '" + std::string(in_.pattern.substr(begin, 4)) + "'");
      }
      on = on && f != '-';
      if (f == 'i') ignores_case = on;
      flags.push_back(f == 'm' ? 's' : f);  // Ruby's m lets the dot match line feeds
      ++in_.at;
    }
    const bool alone = in_.Peek() == ')';
    ++in_.at;
    if (alone && !onig_) {
      out_.append("(?" + flags + ")");
      Begin(Last::kNothing);
    } else {
      // In Oniguruma what follows "(?i)" is one group up to the end of the one around it: a(?i)b|c is a(?i:b|c).
      PORTICO_RETURN_IF_ERROR(
          OpenGroup(alone ? Group::kFlagsAlone : Group::kOther, "(?" + flags + ":"));
    }
    ignores_case_ = ignores_case;
    return OkStatus();
  }

  Status Repeat(const Quantifier& quantifier) {
    if (last_ == Last::kNothing) return in_.Refuse("a quantifier of nothing");
    if (last_ == Last::kAnchor) return in_.Refuse("a quantifier of a place in the text");
    if (last_ != Last::kRepeated) {
      enclosed_ = 0;
      AppendQuantifier(quantifier);
      return OkStatus();
    }
    const NestedQuantifiers both = Simplified(quantifier_, quantifier);
    const std::string inner = both.inner.ToText();
    out_.replace(quantifier_begin_, quantifier_size_, inner);
    quantifier_ = both.inner;
    quantifier_size_ = inner.size();
    if (!both.outer) return OkStatus();
    const bool in_group = quantifier_begin_ + quantifier_size_ < out_.size();
    if (!in_group) {
      if (++enclosed_ > kMaxEnclosed) return in_.Refuse("too many quantifiers of one thing");
      out_.insert(last_begin_, "(?:");
      out_.push_back(')');
    }
    AppendQuantifier(*both.outer);
    return OkStatus();
  }

  void AppendQuantifier(const Quantifier& quantifier) {
    const std::string text = quantifier.ToText();
    lazy_ = lazy_ || quantifier.taking == Quantifier::Taking::kLeast;
    keeps_ = keeps_ || quantifier.taking == Quantifier::Taking::kMostAndKeep;
    quantifier_begin_ = out_.size();
    quantifier_size_ = text.size();
    quantifier_ = quantifier;
    out_.append(text);
    last_ = Last::kRepeated;
  }

  // At the backslash, outside of classes.
  Status Escape() {
    const char c = in_.Peek(1);
    const bool is_anchor = std::string_view("AzZbB").find(c) != std::string_view::npos;
    Begin(is_anchor ? Last::kAnchor : Last::kAtom);
    if (c == 'p' || c == 'P') {
      PORTICO_ASSIGN_OR_RETURN(CharacterProperty property, ParseProperty(&in_));
      AppendAsItIs(*property.characters, property.negated);
      return OkStatus();
    }
    const char lower = static_cast<char>(c | 32);
    if (const NamedCharacters* named = LetterClass(lower, in_.syntax, /*in_class=*/false)) {
      in_.at += 2;
      AppendAsItIs(*named, lower != c);
      return OkStatus();
    }
    if (std::string_view same = Same(c); !same.empty()) {
      out_.append(same);
      in_.at += 2;
      return OkStatus();
    }
    if (c == 'b' || c == 'B') {
      WordBorder(c == 'b');
      in_.at += 2;
      return OkStatus();
    }
    PORTICO_ASSIGN_OR_RETURN(uint32_t character, ParseCharacter(&in_, /*in_class=*/false));
    AppendCharacter(character, CodePoints::One(character).ToClassMembers());
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
    const NamedCharacters* word = LetterClass('w', in_.syntax, /*in_class=*/false);
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
    out_.append(classes_.Use(std::move(text), ignores_case));
  }

  static std::string InBrackets(const std::string& members, bool negated) {
    if (members.empty()) return negated ? "(?s:.)" : "(?!)";
    return (negated ? "[^" : "[") + members + "]";
  }

  PatternCursor in_;
  const bool onig_;
  Last last_ = Last::kNothing;
  size_t last_begin_ = 0;  // in out_
  Quantifier quantifier_;  // of the last thing, if it is repeated, and where it stands
  size_t quantifier_begin_ = 0;
  size_t quantifier_size_ = 0;
  size_t enclosed_ = 0;        // how often, for quantifiers of quantifiers
  bool ignores_case_ = false;  // here
  bool lazy_ = false;          // something takes as little as it can
  bool keeps_ = false;         // something does not give back what it took
  std::vector<Group> groups_;
  SharedClasses classes_;
  std::string out_;
};

}  // namespace

StatusOr<std::string> TranslatePattern(std::string_view pattern, Regex::Syntax syntax,
                                       bool share_classes) {
  return Translator(pattern, syntax, share_classes).Run();
}

}  // namespace portico::tokenizer
