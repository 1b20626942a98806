#include "grammar/schema/expr.h"

#include <fmt/format.h>

#include <algorithm>

namespace portico::grammar {
namespace {

bool IsNever(const Expr& expr) { return expr.kind == Expr::Kind::kChoice && expr.parts.empty(); }

bool IsEmpty(const Expr& expr) { return expr.kind == Expr::Kind::kSequence && expr.parts.empty(); }

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

void PrintClass(const std::vector<std::pair<char32_t, char32_t>>& ranges, std::string* out) {
  *out += '[';
  for (const auto& [from, to] : ranges) {
    PrintChar(from, out);
    if (to == from) continue;
    *out += '-';
    PrintChar(to, out);
  }
  *out += ']';
}

// The class with `<` as its escape; false: it has none.
bool PrintClassWithoutLess(const std::vector<std::pair<char32_t, char32_t>>& ranges,
                           std::string* out) {
  std::vector<std::pair<char32_t, char32_t>> others;
  bool less = false;
  for (const auto& [from, to] : ranges) {
    if (from > U'<' || to < U'<') {
      others.emplace_back(from, to);
      continue;
    }
    less = true;
    if (from < U'<') others.emplace_back(from, U'<' - 1);
    if (to > U'<') others.emplace_back(U'<' + 1, to);
  }
  if (!less) return false;
  *out += '(';
  if (!others.empty()) {
    PrintClass(others, out);
    *out += " | ";
  }
  PrintText(kEscapedLess, out);
  *out += ')';
  return true;
}

}  // namespace

Expr Expr::Never() {
  Expr expr;
  expr.kind = Kind::kChoice;
  return expr;
}

Expr Expr::Text(std::string_view utf8) {
  if (utf8.empty()) return Empty();
  Expr expr;
  expr.kind = Kind::kText;
  expr.text = utf8;
  return expr;
}

Expr Expr::Class(std::vector<std::pair<char32_t, char32_t>> ranges) {
  if (ranges.empty()) return Never();
  Expr expr;
  expr.kind = Kind::kClass;
  expr.ranges = std::move(ranges);
  return expr;
}

Expr Expr::Sequence(std::vector<Expr> parts) {
  std::erase_if(parts, IsEmpty);
  if (parts.size() == 1) return std::move(parts[0]);
  Expr expr;
  expr.parts = std::move(parts);
  return expr;
}

Expr Expr::Choice(std::vector<Expr> parts) {
  std::erase_if(parts, IsNever);
  if (parts.size() == 1) return std::move(parts[0]);
  Expr expr;
  expr.kind = Kind::kChoice;
  expr.parts = std::move(parts);
  return expr;
}

Expr Expr::Rule(int32_t rule) {
  Expr expr;
  expr.kind = Kind::kRule;
  expr.rule = rule;
  return expr;
}

Expr Expr::Repeat(Expr part, int64_t min, int64_t max) {
  if (max == 0) return Empty();
  if (min == 1 && max == 1) return part;
  Expr expr;
  expr.kind = Kind::kRepeat;
  expr.parts.push_back(std::move(part));
  expr.min = min;
  expr.max = max;
  return expr;
}

Expr Expr::Optional(Expr part) { return Repeat(std::move(part), 0, 1); }

Expr Expr::JsonChars() {
  Expr expr;
  expr.kind = Kind::kJsonChars;
  return expr;
}

int32_t RuleSet::Add(std::string_view name, int64_t max_chars) {
  RuleBody rule;
  rule.name = rules_.empty() ? "root" : fmt::format("{}_{}", name, rules_.size());
  rule.max_chars = max_chars;
  rules_.push_back(std::move(rule));
  return size() - 1;
}

void RuleSet::SetFollowing(int32_t rule, std::string_view ebnf) {
  rules_[static_cast<size_t>(rule)].following = ebnf;
}

void RuleSet::Set(int32_t rule, Expr body) { rules_[rule].body = std::move(body); }

bool RuleSet::IsProductive(const Expr& expr) const {
  const auto productive = [this](const Expr& part) { return IsProductive(part); };
  switch (expr.kind) {
    case Expr::Kind::kText:
    case Expr::Kind::kClass:
    case Expr::Kind::kJsonChars:
      return true;
    case Expr::Kind::kSequence:
      return std::all_of(expr.parts.begin(), expr.parts.end(), productive);
    case Expr::Kind::kChoice:
      return std::any_of(expr.parts.begin(), expr.parts.end(), productive);
    case Expr::Kind::kRule:
      return productive_[expr.rule];
    case Expr::Kind::kRepeat:
      return expr.min == 0 || IsProductive(expr.parts[0]);
  }
  return false;
}

void RuleSet::FindProductive() {
  productive_.assign(rules_.size(), false);
  bool changed = true;
  while (changed) {
    changed = false;
    // Later rules are mostly parts of earlier ones.
    for (size_t i = rules_.size(); i-- > 0;) {
      if (productive_[i] || !IsProductive(rules_[i].body)) continue;
      productive_[i] = true;
      changed = true;
    }
  }
}

void RuleSet::Prune(Expr* expr) const {
  if (expr->kind == Expr::Kind::kChoice) {
    std::erase_if(expr->parts, [this](const Expr& part) { return !IsProductive(part); });
  }
  if (expr->kind == Expr::Kind::kRepeat && !IsProductive(expr->parts[0])) *expr = Expr::Empty();
  for (Expr& part : expr->parts) Prune(&part);
}

void RuleSet::Reach(const Expr& expr, std::vector<int32_t>* stack) {
  if (expr.kind == Expr::Kind::kRule && !reached_[expr.rule]) {
    reached_[expr.rule] = true;
    stack->push_back(expr.rule);
  }
  for (const Expr& part : expr.parts) Reach(part, stack);
}

// Appends the rules that `expr` can begin with. True: it can be empty.
bool RuleSet::FirstRules(const Expr& expr, const std::vector<bool>& nullable,
                         std::vector<int32_t>* first) const {
  switch (expr.kind) {
    case Expr::Kind::kText:
    case Expr::Kind::kClass:
      return false;
    case Expr::Kind::kSequence:
      for (const Expr& part : expr.parts) {
        if (!FirstRules(part, nullable, first)) return false;
      }
      return true;
    case Expr::Kind::kChoice: {
      bool empty = false;
      for (const Expr& part : expr.parts) empty = FirstRules(part, nullable, first) || empty;
      return empty;
    }
    case Expr::Kind::kRule:
      first->push_back(expr.rule);
      return nullable[expr.rule];
    case Expr::Kind::kRepeat:
      return FirstRules(expr.parts[0], nullable, first) || expr.min == 0;
    case Expr::Kind::kJsonChars:
      return true;
  }
  return true;
}

Status RuleSet::CheckNoLeftCycle() const {
  std::vector<bool> nullable(rules_.size(), false);
  std::vector<std::vector<int32_t>> first(rules_.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = rules_.size(); i-- > 0;) {
      if (!reached_[i]) continue;
      first[i].clear();
      if (FirstRules(rules_[i].body, nullable, &first[i]) && !nullable[i]) {
        nullable[i] = true;
        changed = true;
      }
    }
  }
  // 1: on the way, 2: done.
  std::vector<uint8_t> seen(rules_.size(), 0);
  std::vector<std::pair<int32_t, size_t>> way{{0, 0}};
  seen[0] = 1;
  while (!way.empty()) {
    auto& [rule, next] = way.back();
    if (next == first[rule].size()) {
      seen[rule] = 2;
      way.pop_back();
      continue;
    }
    const int32_t to = first[rule][next++];
    if (seen[to] == 1) {
      return Error(StatusCode::kInvalidArgument, "a part of it consists of itself, without end");
    }
    if (seen[to] == 2) continue;
    seen[to] = 1;
    way.emplace_back(to, 0);
  }
  return OkStatus();
}

void RuleSet::PrintExpr(const Expr& expr, bool nested, std::string* out) const {
  switch (expr.kind) {
    case Expr::Kind::kText:
      return PrintText(escape_less_ ? WithoutLess(expr.text) : expr.text, out);
    case Expr::Kind::kClass:
      if (escape_less_ && PrintClassWithoutLess(expr.ranges, out)) return;
      return PrintClass(expr.ranges, out);
    case Expr::Kind::kRule:
      *out += rules_[expr.rule].name;
      return;
    case Expr::Kind::kJsonChars:
      *out += "Regex(";
      PrintText(JsonCharsRegex(escape_less_), out);
      *out += ')';
      return;
    case Expr::Kind::kRepeat: {
      const Expr& part = expr.parts[0];
      const bool simple = part.kind == Expr::Kind::kClass || part.kind == Expr::Kind::kRule;
      if (!simple) *out += '(';
      PrintExpr(part, false, out);
      if (!simple) *out += ')';
      if (expr.min == 0 && expr.max == 1) {
        *out += '?';
      } else if (expr.min == 0 && expr.max < 0) {
        *out += '*';
      } else if (expr.min == 1 && expr.max < 0) {
        *out += '+';
      } else if (expr.max < 0) {
        *out += fmt::format("{{{},}}", expr.min);
      } else {
        *out += fmt::format("{{{},{}}}", expr.min, expr.max);
      }
      return;
    }
    case Expr::Kind::kSequence:
    case Expr::Kind::kChoice: {
      if (IsEmpty(expr)) {
        *out += "\"\"";
        return;
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
    if (rules_[i].max_chars >= 0) out += fmt::format("[max_chars={}]", rules_[i].max_chars);
    out += " ::= ";
    const std::string& following = rules_[i].following;
    PrintExpr(rules_[i].body, !following.empty(), &out);
    if (!following.empty()) out += fmt::format(" (= {})", following);
    out += '\n';
  }
  return out;
}

}  // namespace portico::grammar
