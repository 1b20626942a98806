#include "grammar/schema/open_ends.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "grammar/schema/automaton.h"
#include "grammar/schema/json_text.h"

namespace portico::grammar {
namespace {

// Fewer are states.
constexpr int64_t kLeastRun = 3;
constexpr int64_t kLeastRunFromStart = 9;

// One character, or one that is repeated.
struct Run {
  const Expr* one = nullptr;
  int64_t min = 1;
  int64_t max = 1;
};

std::optional<Run> RunOf(const Expr& expr) {
  if (expr.one_char) return Run{&expr, 1, 1};
  if (expr.kind != Expr::Kind::kRepeat || !expr.parts[0].one_char) return std::nullopt;
  return Run{&expr.parts[0], expr.min, expr.max};
}

Expr AnyChars() { return Expr::Repeat(AnyJsonChar(), 0, -1); }

CharRanges Joined(CharRanges a, const CharRanges& b) {
  a.insert(a.end(), b.begin(), b.end());
  return Normalized(std::move(a));
}

Expr OneAutomaton(std::vector<Expr> parts) {
  Expr all = Expr::Sequence(std::move(parts));
  all.searched = all.kind == Expr::Kind::kSequence;
  return all;
}

// How often its characters repeat, in all.
int64_t Repeated(const Expr& expr) {
  int64_t all = 0;
  for (const Expr& part : expr.parts) all = std::min(all + Repeated(part), kMostSearchedChars + 1);
  if (expr.kind != Expr::Kind::kRepeat) return expr.one_char ? 1 : all;
  return std::min(all * std::max({expr.min, expr.max, int64_t{1}}), kMostSearchedChars + 1);
}

}  // namespace

std::vector<Expr> WithRunsJoined(std::vector<Expr> parts) {
  std::vector<Expr> joined;
  for (Expr& part : parts) {
    const auto run = RunOf(part);
    const auto last = joined.empty() ? std::nullopt : RunOf(joined.back());
    const bool is_same = run && last && !run->one->chars.empty() &&
                         run->one->chars == last->one->chars &&
                         (run->max != 1 || run->min != 1 || last->max != 1 || last->min != 1);
    if (!is_same) {
      joined.push_back(std::move(part));
      continue;
    }
    const int64_t max = run->max < 0 || last->max < 0 ? -1 : run->max + last->max;
    joined.back() = Expr::Repeat(Expr(*last->one), run->min + last->min, max);
  }
  return joined;
}

std::vector<Expr> WithOpenEnds(std::vector<Expr> parts, bool from_start, bool to_end) {
  const auto keep_least = [](Expr* part) {
    if (part->kind != Expr::Kind::kRepeat) return true;
    const int64_t least = part->min;
    *part = Expr::Repeat(Expr(part->parts[0]), least, least);
    return least > 0;
  };
  if (!from_start) {
    while (!parts.empty() && !keep_least(&parts.front())) parts.erase(parts.begin());
    parts.insert(parts.begin(), Expr::Repeat(AnyJsonChar(), 0, -1));
  }
  if (!to_end) {
    const size_t first = from_start ? 0 : 1;
    while (parts.size() > first && !keep_least(&parts.back())) parts.pop_back();
    const bool only_any = parts.size() == 1 && !from_start;
    if (!only_any) parts.push_back(Expr::Repeat(AnyJsonChar(), 0, -1));
  }
  return parts;
}

std::optional<Expr> WithEndsOfRuns(const Expr& sequence) {
  if (sequence.kind != Expr::Kind::kSequence || sequence.parts.size() < 2) return std::nullopt;
  const Expr any = AnyChars();
  const bool from_start = sequence.parts.front() != any;
  const bool to_end = sequence.parts.back() != any;
  std::vector<Expr> parts(sequence.parts.begin() + (from_start ? 0 : 1),
                          sequence.parts.end() - (to_end ? 0 : 1));
  if (parts.empty() || (from_start && to_end)) return std::nullopt;
  const auto run = RunOf(parts.back());
  const int64_t least = from_start ? kLeastRunFromStart : kLeastRun;
  if (!run || run->one->chars.empty() || run->min < least) return std::nullopt;
  // More than `max` of them may be at the end only if the first ones may be any characters.
  if (to_end && run->max >= 0 && parts.size() > 1) return std::nullopt;
  const CharRanges chars = run->one->chars;
  // There, more repetitions match nothing more.
  Expr all_of_run = Expr::Repeat(Expr(*run->one), run->min, -1);
  std::vector<Expr> before(std::make_move_iterator(parts.begin()),
                           std::make_move_iterator(parts.end() - 1));
  if (!from_start) {
    // Nothing, or any characters, and what is no part of the run.
    std::vector<Expr> begin{Expr::Optional(OneAutomaton({any, JsonCharBut(chars)}))};
    if (before.size() == 1) {
      // The first of these characters in a run has most of the run behind it.
      const Expr& first = before.front();
      if (!first.one_char || first.chars.empty() || Joined(chars, first.chars) != chars) {
        return std::nullopt;
      }
      const CharRanges others = Complement(Joined(Complement(chars), first.chars));
      begin.push_back(Expr::Repeat(JsonChar(others), 0, -1));
      begin.push_back(first);
      begin = {OneAutomaton(std::move(begin))};
    } else if (before.size() > 1) {
      return std::nullopt;
    }
    before = std::move(begin);
  }
  before.push_back(std::move(all_of_run));
  // Nothing, or what ends the run, and any characters.
  if (!to_end) before.push_back(Expr::Optional(OneAutomaton({JsonCharBut(chars), any})));
  return Expr::Sequence(std::move(before));
}

Expr WithEndsAsAutomata(const Expr& searched) {
  std::vector<Expr> parts;
  for (const Expr& part : searched.parts) {
    const auto run = RunOf(part);
    if (run && run->max < 0 && run->min > 1) {
      // Once it has so many, it does not matter where it began.
      parts.push_back(Expr::Repeat(Expr(*run->one), run->min, run->min));
      parts.push_back(Expr::Repeat(Expr(*run->one), 0, -1));
    } else {
      parts.push_back(part);
    }
  }
  const auto some = [&parts](size_t from, size_t to) {
    return OneAutomaton(
        {parts.begin() + static_cast<ptrdiff_t>(from), parts.begin() + static_cast<ptrdiff_t>(to)});
  };
  size_t front = 0;
  size_t back = parts.size();
  while (front < back && AutomatonOf(some(0, front + 1), kSearchStates)) ++front;
  while (back > front && AutomatonOf(some(back - 1, parts.size()), kSearchStates)) --back;
  std::vector<Expr> all{some(0, front)};
  for (size_t i = front; i < back; ++i) all.push_back(parts[i]);
  all.push_back(some(back, parts.size()));
  return Expr::Sequence(std::move(all));
}

bool CanBeSearched(const Expr& pattern) {
  if (pattern.kind == Expr::Kind::kChoice && !pattern.one_char) {
    return std::all_of(pattern.parts.begin(), pattern.parts.end(), CanBeSearched);
  }
  if (!pattern.searched || AutomatonOf(pattern, kSearchStates) || WithEndsOfRuns(pattern)) {
    return true;
  }
  return Repeated(pattern) <= kMostSearchedChars;
}

}  // namespace portico::grammar
