// Grammars as EBNF.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/schema/automaton.h"
#include "grammar/schema/expr.h"

namespace portico::grammar {
namespace {

void PrintText(std::string_view utf8, std::string* out) {
  *out += '"';
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (c == '\n') {
      *out += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      *out += fmt::format("\\u{:04x}", byte);
    } else {
      *out += c;
    }
  }
  *out += '"';
}

void PrintChar(char32_t c, std::string* out) {
  if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == ' ') {
    *out += static_cast<char>(c);
  } else if (c <= 0xffff) {
    *out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
  } else {
    *out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
  }
}

// Of JSON, where it can only be a part of a string.
constexpr std::string_view kEscapedLess = "\\u003c";

std::string WithoutLess(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<') {
      out += kEscapedLess;
    } else {
      out += c;
    }
  }
  return out;
}

// What Expr::JsonChars() matches. No class may have characters of different numbers of bytes: the library would take overlong forms
// of UTF-8 as well.
std::string JsonCharsRegex(bool escape_less) {
  return fmt::format(
      R"(({}|[\x80-\u07ff]|[\u0800-\ud7ff]|[\ue000-\uffff]|[\u{{10000}}-\u{{10ffff}}])"
      R"(|\\(["\\bfnrt]|u00([01][0-9a-f]{})))*)",
      escape_less ? R"([ !#-;=-\[\]-\x7f])" : R"([ !#-\[\]-\x7f])", escape_less ? "|3c" : "");
}

void PrintClass(const CharRanges& ranges, std::string* out) {
  *out += '[';
  for (const auto& [from, to] : ranges) {
    PrintChar(from, out);
    if (to == from) continue;
    *out += '-';
    PrintChar(to, out);
  }
  *out += ']';
}

// Whether the class has `<`; the others of it.
bool TakeLess(const CharRanges& ranges, CharRanges* others) {
  bool less = false;
  for (const auto& [from, to] : ranges) {
    if (from > U'<' || to < U'<') {
      others->emplace_back(from, to);
      continue;
    }
    less = true;
    if (from < U'<') others->emplace_back(from, U'<' - 1);
    if (to > U'<') others->emplace_back(U'<' + 1, to);
  }
  return less;
}

// With `<` as its escape.
Expr WithoutLess(const Expr& expr) {
  Expr made = expr;
  if (expr.kind == Expr::Kind::kText) made.text = WithoutLess(expr.text);
  if (expr.kind == Expr::Kind::kClass) {
    CharRanges others;
    if (TakeLess(expr.ranges, &others)) {
      made = Expr::Choice({Expr::Class(std::move(others)), Expr::Text(kEscapedLess)});
    }
  }
  for (Expr& part : made.parts) part = WithoutLess(part);
  return made;
}

}  // namespace

void RuleSet::PrintRegex(const std::string& regex, std::string* out) const {
  *out += "Regex(";
  PrintText(regex, out);
  *out += ')';
}

// The core takes kNothing alone for nothing (scripts/xgrammar_pieces.patch).
void RuleSet::PrintAhead(const std::vector<CharRanges>& ahead, std::string* out) const {
  constexpr char32_t kNothing = 0x10FFFF;
  if (ahead.empty()) return;
  *out += " (=";
  for (const CharRanges& set : ahead) {
    CharRanges printed;
    const bool less = escape_less_ && TakeLess(set, &printed);
    if (!less) printed = set;
    if (less) printed.emplace_back(U'\\', U'\\');
    if (printed == CharRanges{{kNothing, kNothing}}) printed[0].first = kNothing - 1;
    if (set.empty()) printed = {{kNothing, kNothing}};
    *out += ' ';
    PrintClass(printed, out);
    if (less || set.empty()) break;
  }
  *out += ')';
}

// The rule of an automaton.
std::string RuleSet::Group(const std::string& regex) {
  const auto found = std::find(groups_.begin(), groups_.end(), regex);
  const auto index = found - groups_.begin();
  if (found == groups_.end()) groups_.push_back(regex);
  return fmt::format("group_{}", index);
}

bool RuleSet::PrintGroup(const Expr& printed, std::string* out) {
  const Expr repeat = escape_less_ ? WithoutLess(printed) : printed;
  const Expr& part = repeat.parts[0];
  if (part.kind == Expr::Kind::kClass || repeat.max == 1) return false;
  if (const auto all = WholeRepeat(repeat)) {
    *out += Group(all->regex);
    return true;
  }
  // The core repeats it by a count.
  const auto one = AutomatonOf(part, kGroupStates);
  if (!one || one->nullable || (repeat.max < 0 && !part.one_char)) return false;
  if (repeat.max < 0) {
    *out += Group(one->regex) + Quantifier(repeat.min, repeat.min) + ' ';
    *out += Group(fmt::format("({}*)", one->regex));
    return true;
  }
  *out += Group(one->regex) + Quantifier(repeat.min, repeat.max);
  return true;
}

void RuleSet::PrintExpr(const Expr& expr, bool nested, std::string* out) {
  switch (expr.kind) {
    case Expr::Kind::kText:
      return PrintText(escape_less_ ? WithoutLess(expr.text) : expr.text, out);
    case Expr::Kind::kClass:
      if (CharRanges others; escape_less_ && TakeLess(expr.ranges, &others)) {
        return PrintExpr(WithoutLess(expr), true, out);
      }
      return PrintClass(expr.ranges, out);
    case Expr::Kind::kRule:
      *out += rules_[expr.rule].name;
      return;
    case Expr::Kind::kJsonChars:
      return PrintRegex(JsonCharsRegex(escape_less_), out);
    case Expr::Kind::kRepeat: {
      const Expr& part = expr.parts[0];
      if (PrintGroup(expr, out)) return;
      const bool simple = part.kind == Expr::Kind::kClass || part.kind == Expr::Kind::kRule;
      if (!simple) *out += '(';
      PrintExpr(part, false, out);
      if (!simple) *out += ')';
      *out += Quantifier(expr.min, expr.max);
      return;
    }
    case Expr::Kind::kSequence:
    case Expr::Kind::kChoice: {
      if (expr.kind == Expr::Kind::kSequence && expr.parts.empty()) {
        *out += "\"\"";
        return;
      }
      if (expr.searched) {
        const auto all = AutomatonOf(escape_less_ ? WithoutLess(expr) : expr, kSearchStates);
        if (all) {
          *out += Group(all->regex);
          return;
        }
      }
      if (nested) *out += '(';
      const char* const between = expr.kind == Expr::Kind::kSequence ? " " : " | ";
      for (size_t i = 0; i < expr.parts.size(); ++i) {
        if (i > 0) *out += between;
        PrintExpr(expr.parts[i], true, out);
      }
      if (nested) *out += ')';
      return;
    }
  }
}

StatusOr<std::string> RuleSet::Print(bool escape_less) {
  escape_less_ = escape_less;
  groups_.clear();
  FindProductive();
  if (!productive_[0]) {
    return Error(StatusCode::kInvalidArgument, "nothing can satisfy it");
  }
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (productive_[i]) Prune(&rules_[i].body);
  }
  reached_.assign(rules_.size(), false);
  reached_[0] = true;
  std::vector<int32_t> stack{0};
  while (!stack.empty()) {
    const int32_t rule = stack.back();
    stack.pop_back();
    Reach(rules_[rule].body, &stack);
  }
  PORTICO_RETURN_IF_ERROR(CheckNoLeftCycle());
  std::string out;
  for (size_t i = 0; i < rules_.size(); ++i) {
    if (!reached_[i]) continue;
    out += rules_[i].name;
    out += rules_[i].counts;
    out += " ::= ";
    if (rules_[i].is_automaton) {
      const Expr& body = rules_[i].body;
      const auto automaton =
          AutomatonOf(escape_less_ ? WithoutLess(body) : body, std::numeric_limits<int64_t>::max());
      if (!automaton) return Error(StatusCode::kInternal, "a counted piece is no automaton");
      PrintRegex(automaton->regex, &out);
      PrintAhead(rules_[i].ahead, &out);
      out += '\n';
      continue;
    }
    const std::string& following = rules_[i].following;
    PrintExpr(rules_[i].body, !following.empty(), &out);
    if (!following.empty()) out += fmt::format(" (= {})", following);
    out += '\n';
  }
  for (size_t i = 0; i < groups_.size(); ++i) {
    out += fmt::format("group_{} ::= ", i);
    PrintRegex(groups_[i], &out);
    out += '\n';
  }
  return out;
}

}  // namespace portico::grammar
