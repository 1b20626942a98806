#include "grammar/schema/expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>

#include "grammar/schema/automaton.h"

namespace portico::grammar {
namespace {

bool IsNever(const Expr& expr) { return expr.kind == Expr::Kind::kChoice && expr.parts.empty(); }

bool IsEmpty(const Expr& expr) { return expr.kind == Expr::Kind::kSequence && expr.parts.empty(); }

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

Expr Expr::Class(CharRanges ranges) {
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
  if (max == 0 || (min == 0 && IsNever(part))) return Empty();
  if (IsNever(part)) return part;
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

int32_t RuleSet::Add(std::string_view name) {
  RuleBody rule;
  rule.name = rules_.empty() ? "root" : fmt::format("{}_{}", name, rules_.size());
  rules_.push_back(std::move(rule));
  return size() - 1;
}

int32_t RuleSet::AddCounted(std::string_view name, int64_t min_chars, int64_t max_chars) {
  const int32_t rule = Add(name);
  // The core's largest count.
  if (max_chars < 0) max_chars = std::numeric_limits<int32_t>::max();
  rules_.back().counts = fmt::format("[max_chars={}, min_chars={}]", max_chars, min_chars);
  return rule;
}

int32_t RuleSet::AddCounted(std::string_view name, int64_t min_chars, int64_t max_chars,
                            CountedChars chars, const Expr& one_char,
                            const std::vector<CharRanges>& ahead) {
  const auto automaton = AutomatonOf(one_char, std::numeric_limits<int64_t>::max());
  std::string key = fmt::format("{} {} {} {}", min_chars, max_chars, static_cast<int>(chars),
                                automaton ? automaton->regex : "");
  for (const CharRanges& set : ahead) {
    key += '/';
    for (const auto& [from, to] : set) {
      key += fmt::format("{}-{} ", static_cast<uint32_t>(from), static_cast<uint32_t>(to));
    }
  }
  const auto [found, added] = pieces_.try_emplace(std::move(key), size());
  if (!added) return found->second;
  const int32_t rule = AddCounted(name, min_chars, max_chars);
  RuleBody& piece = rules_.back();
  if (chars == CountedChars::kCodePoints) {
    // The core counts escapes of JSON where a rule has min_chars.
    piece.counts.replace(piece.counts.find("min_chars"), std::string_view("min_chars").size(),
                         "min_codepoints");
  }
  piece.body = Expr::Repeat(one_char, 0, -1);
  piece.is_automaton = true;
  piece.ahead = ahead;
  return rule;
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

// A rule that nothing matches, and for which nothing matches `expr`, which nothing matches; -1: there is none.
int32_t RuleSet::UnsatisfiedIn(const Expr& expr) const {
  if (expr.kind == Expr::Kind::kRule) return expr.rule;
  for (const Expr& part : expr.parts) {
    if (!IsProductive(part)) {
      const int32_t rule = UnsatisfiedIn(part);
      if (rule >= 0 || expr.kind == Expr::Kind::kSequence) return rule;
    }
  }
  return -1;
}

std::vector<int32_t> RuleSet::Unsatisfied() {
  FindProductive();
  std::vector<int32_t> way;
  if (productive_[0]) return way;
  for (int32_t rule = 0; rule >= 0; rule = UnsatisfiedIn(rules_[rule].body)) {
    if (std::find(way.begin(), way.end(), rule) != way.end()) break;
    way.push_back(rule);
  }
  return way;
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

}  // namespace portico::grammar
