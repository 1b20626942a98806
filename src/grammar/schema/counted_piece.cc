#include "grammar/schema/counted_piece.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "grammar/schema/automaton.h"
#include "grammar/schema/open_ends.h"
#include "text/utf8.h"

namespace portico::grammar {
namespace {

// So many characters ahead are looked at: of `": "` and `","` the second tells most.
constexpr size_t kCharsAhead = 3;
// A class takes as many states as the count says up to these numbers: where the characters tell whether the piece goes on, and where
// what follows may be one of them. The core has no masks for longer ones.
constexpr int64_t kMostApartStates = 8;
constexpr int64_t kMostStatesOfClass = 48;
// Others are automata that the core repeats as states so often.
constexpr int64_t kMostRepeatedStates = 16;
// Of a piece in a group that is one automaton.
constexpr int64_t kMostStatesInGroup = 32;
// Of the walks that find what is ahead. Nothing is known where they end.
constexpr int64_t kMostSteps = 200000;
constexpr int kMostNestedRepeats = 4;
constexpr int64_t kUnboundedLength = std::numeric_limits<int64_t>::max();

CharsAhead Either(const CharsAhead& a, const CharsAhead& b) {
  CharsAhead both;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    CharRanges set = a[i];
    set.insert(set.end(), b[i].begin(), b[i].end());
    both.push_back(Normalized(std::move(set)));
  }
  return both;
}

CharsAhead InFront(CharRanges set, CharsAhead ahead) {
  ahead.insert(ahead.begin(), std::move(set));
  if (ahead.size() > kCharsAhead) ahead.pop_back();
  return ahead;
}

bool AreApart(const CharRanges& a, const CharRanges& b) {
  for (const auto& [from, to] : a) {
    // The core tries what is behind a backslash.
    if (from == U'\\' && to == U'\\') continue;
    for (const auto& [low, high] : b) {
      if (from <= high && low <= to) return false;
    }
  }
  return true;
}

class PieceCounter {
 public:
  PieceCounter(CountedChars chars, RuleSet* rules) : chars_(chars), rules_(rules) {}

  // `expr`, in front of `ahead`.
  Expr Count(Expr expr, const CharsAhead& ahead) {
    switch (expr.kind) {
      case Expr::Kind::kText:
      case Expr::Kind::kClass:
      case Expr::Kind::kRule:
      case Expr::Kind::kJsonChars:
        return expr;
      case Expr::Kind::kSequence: {
        if (expr.searched && AutomatonOf(expr, kGroupStates)) return expr;
        if (auto runs = WithEndsOfRuns(expr)) {
          expr = *std::move(runs);
        } else if (expr.searched) {
          if (AutomatonOf(expr, kSearchStates)) return expr;
          expr = WithEndsAsAutomata(expr);
        }
        CharsAhead behind = ahead;
        for (size_t i = expr.parts.size(); i-- > 0;) {
          CharsAhead here = First(expr.parts[i], behind, 0);
          expr.parts[i] = Count(std::move(expr.parts[i]), behind);
          behind = std::move(here);
        }
        return expr;
      }
      case Expr::Kind::kChoice:
        for (Expr& part : expr.parts) part = Count(std::move(part), ahead);
        return expr;
      case Expr::Kind::kRepeat:
        return CountRepeat(std::move(expr), ahead);
    }
    return expr;
  }

 private:
  Expr CountRepeat(Expr repeat, const CharsAhead& ahead) {
    Expr& part = repeat.parts[0];
    if (part.one_char) {
      if (!IsCounted(repeat, ahead)) return repeat;
      return Expr::Rule(rules_->AddCounted("piece", repeat.min, repeat.max, chars_, part, ahead));
    }
    if (repeat.max != 1 && !HasLongPiece(part) && IsAutomaton(repeat)) return repeat;
    // Its next repetition may follow.
    const CharsAhead behind =
        repeat.max == 1 ? ahead : Either(ahead, First(part, Again(part, ahead, 0), 0));
    part = Count(std::move(part), behind);
    return repeat;
  }

  // Its states take longer to compile than a mask to tell what they would.
  static bool HasLongPiece(const Expr& expr) {
    if (expr.kind == Expr::Kind::kRepeat && expr.parts[0].one_char) {
      return std::max(expr.min, expr.max) > kMostStatesInGroup;
    }
    return std::any_of(expr.parts.begin(), expr.parts.end(), HasLongPiece);
  }

  static bool IsAutomaton(const Expr& repeat) {
    if (WholeRepeat(repeat)) return true;
    const auto one = AutomatonOf(repeat.parts[0], kGroupStates);
    return one && !one->nullable && repeat.max >= 0;
  }

  bool IsCounted(const Expr& repeat, const CharsAhead& ahead) {
    const Expr& part = repeat.parts[0];
    const int64_t count = std::max(repeat.min, repeat.max);
    if (count <= 1) return false;
    const bool is_class = part.kind == Expr::Kind::kClass;
    if (!is_class && AutomatonOf(repeat, kGroupStates)) return false;
    // The core would repeat a rule, and try at each mask what may follow it.
    if (!is_class && repeat.max < 0 && !WholeRepeat(repeat)) return true;
    const CharsAhead first = First(part, {}, 0);
    const bool apart = !ahead.empty() && !first.empty() && AreApart(first[0], ahead[0]);
    if (apart) return count > kMostApartStates;
    return count > (is_class ? kMostStatesOfClass : kMostRepeatedStates);
  }

  // In front of any number of repetitions of `part`, and of `ahead` behind them.
  CharsAhead Again(const Expr& part, const CharsAhead& ahead, int depth) {
    if (depth >= kMostNestedRepeats) return {};
    CharsAhead all = ahead;
    for (size_t i = 0; i <= kCharsAhead; ++i) all = Either(ahead, First(part, all, depth + 1));
    return all;
  }

  // What `expr` in front of `ahead` can begin with.
  CharsAhead First(const Expr& expr, const CharsAhead& ahead, int depth) {
    if (++steps_ > kMostSteps) return {};
    switch (expr.kind) {
      case Expr::Kind::kText: {
        CharsAhead first = TextAhead(expr.text);
        for (const CharRanges& set : ahead) {
          if (first.size() < kCharsAhead) first.push_back(set);
        }
        return first;
      }
      case Expr::Kind::kClass:
        return InFront(expr.ranges, ahead);
      case Expr::Kind::kSequence: {
        CharsAhead first = ahead;
        for (size_t i = expr.parts.size(); i-- > 0;) first = First(expr.parts[i], first, depth);
        return first;
      }
      case Expr::Kind::kChoice: {
        CharsAhead first(kCharsAhead);
        for (const Expr& part : expr.parts) first = Either(first, First(part, ahead, depth));
        return first;
      }
      case Expr::Kind::kRepeat: {
        const Expr& part = expr.parts[0];
        CharsAhead first = Again(part, ahead, depth);
        for (int64_t i = 0; i < std::min<int64_t>(expr.min, kCharsAhead); ++i) {
          first = First(part, first, depth);
        }
        return first;
      }
      case Expr::Kind::kRule:
      case Expr::Kind::kJsonChars:
        return {};
    }
    return {};
  }

  const CountedChars chars_;
  RuleSet* const rules_;
  int64_t steps_ = 0;
};

struct LengthRange {
  int64_t least = 0;
  int64_t most = 0;  // kUnboundedLength: no bound
};

int64_t Times(int64_t length, int64_t times) {
  if (length == 0 || times == 0) return 0;
  return length > kUnboundedLength / times ? kUnboundedLength : length * times;
}

int64_t Plus(int64_t a, int64_t b) { return a > kUnboundedLength - b ? kUnboundedLength : a + b; }

// In characters. Absent: its parts are no characters.
std::optional<LengthRange> LengthOf(const Expr& expr) {
  if (expr.one_char) return LengthRange{1, 1};
  switch (expr.kind) {
    case Expr::Kind::kSequence: {
      LengthRange all;
      for (const Expr& part : expr.parts) {
        const auto one = LengthOf(part);
        if (!one) return std::nullopt;
        all = {Plus(all.least, one->least), Plus(all.most, one->most)};
      }
      return all;
    }
    case Expr::Kind::kChoice: {
      LengthRange all{kUnboundedLength, 0};
      for (const Expr& part : expr.parts) {
        const auto one = LengthOf(part);
        if (!one) return std::nullopt;
        all = {std::min(all.least, one->least), std::max(all.most, one->most)};
      }
      return all;
    }
    case Expr::Kind::kRepeat: {
      const auto one = LengthOf(expr.parts[0]);
      if (!one) return std::nullopt;
      return LengthRange{Times(one->least, expr.min),
                         Times(one->most, expr.max < 0 ? kUnboundedLength : expr.max)};
    }
    case Expr::Kind::kText:
    case Expr::Kind::kClass:
    case Expr::Kind::kRule:
    case Expr::Kind::kJsonChars:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Expr> Limited(const Expr& expr, const LengthRange& range) {
  const auto own = LengthOf(expr);
  if (!own) return std::nullopt;
  if (own->least >= range.least && own->most <= range.most) return expr;
  if (own->most < range.least || own->least > range.most) return Expr::Never();
  switch (expr.kind) {
    case Expr::Kind::kChoice: {
      std::vector<Expr> ways;
      for (const Expr& part : expr.parts) {
        auto way = Limited(part, range);
        if (!way) return std::nullopt;
        ways.push_back(*std::move(way));
      }
      return Expr::Choice(std::move(ways));
    }
    case Expr::Kind::kSequence: {
      // All parts but one have one length only.
      int64_t others = 0;
      size_t variable = expr.parts.size();
      for (size_t i = 0; i < expr.parts.size(); ++i) {
        const auto one = LengthOf(expr.parts[i]);
        if (one->least == one->most) {
          others += one->least;
        } else if (variable < expr.parts.size()) {
          return std::nullopt;
        } else {
          variable = i;
        }
      }
      if (variable == expr.parts.size()) return std::nullopt;
      const LengthRange rest{std::max<int64_t>(range.least - others, 0),
                             range.most == kUnboundedLength ? range.most : range.most - others};
      auto limited = Limited(expr.parts[variable], rest);
      if (!limited) return std::nullopt;
      Expr all = expr;
      all.parts[variable] = *std::move(limited);
      return all;
    }
    case Expr::Kind::kRepeat: {
      const auto one = LengthOf(expr.parts[0]);
      if (one->least != one->most || one->least == 0) return std::nullopt;
      const int64_t length = one->least;
      const int64_t least = std::max(expr.min, (range.least + length - 1) / length);
      int64_t most = expr.max;
      if (range.most != kUnboundedLength) {
        const int64_t fitting = range.most / length;
        most = most < 0 ? fitting : std::min(most, fitting);
      }
      if (most >= 0 && least > most) return Expr::Never();
      return Expr::Repeat(expr.parts[0], least, most);
    }
    case Expr::Kind::kText:
    case Expr::Kind::kClass:
    case Expr::Kind::kRule:
    case Expr::Kind::kJsonChars:
      break;
  }
  return std::nullopt;
}

}  // namespace

CharsAhead NothingAhead() { return CharsAhead(kCharsAhead); }

CharsAhead QuoteAhead() {
  return {{{U'"', U'"'}},
          {{U'\t', U'\n'},
           {U'\r', U'\r'},
           {U' ', U' '},
           {U',', U','},
           {U':', U':'},
           {U']', U']'},
           {U'}', U'}'}}};
}

CharsAhead NameEndAhead() {
  return {{{U'"', U'"'}}, {{U'\t', U'\n'}, {U'\r', U'\r'}, {U' ', U' '}, {U':', U':'}}};
}

CharsAhead TextAhead(std::string_view utf8) {
  CharsAhead ahead;
  while (!utf8.empty() && ahead.size() < kCharsAhead) {
    const size_t length = std::max<size_t>(Utf8SequenceLength(utf8), 1);
    const char32_t c = Utf8Decode(utf8, length);
    ahead.push_back({{c, c}});
    utf8.remove_prefix(length);
  }
  return ahead;
}

Expr WithCountedPieces(Expr pattern, CountedChars chars, const CharsAhead& ahead, RuleSet* rules) {
  return PieceCounter(chars, rules).Count(std::move(pattern), ahead);
}

std::optional<Expr> WithLength(const Expr& pattern, int64_t least, int64_t most) {
  return Limited(pattern, {least, most < 0 ? kUnboundedLength : most});
}

}  // namespace portico::grammar
