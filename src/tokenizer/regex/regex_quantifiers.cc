#include "tokenizer/regex/regex_quantifiers.h"

#include <algorithm>
#include <utility>

namespace portico::tokenizer {
namespace {

using Taking = Quantifier::Taking;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Digits at the cursor; more than any library takes are one number too many.
std::optional<uint32_t> ReadNumber(PatternCursor* in) {
  if (!IsDigit(in->Peek())) return std::nullopt;
  uint64_t value = 0;
  for (; IsDigit(in->Peek()); ++in->at) {
    value = std::min<uint64_t>(value * 10 + static_cast<uint64_t>(in->Peek() - '0'), 1'000'000);
  }
  return static_cast<uint32_t>(value);
}

// "{n}", "{n,}", "{n,m}" and "{,m}", without what follows.
std::optional<Quantifier> ReadInterval(PatternCursor* in, bool* is_one_number) {
  const size_t begin = in->at;
  in->Take("{");
  const std::optional<uint32_t> least = ReadNumber(in);
  *is_one_number = !in->Take(",");
  const std::optional<uint32_t> most = *is_one_number ? least : ReadNumber(in);
  if ((!least && !most) || !in->Take("}")) {
    in->at = begin;
    return std::nullopt;
  }
  return Quantifier{least.value_or(0), most.value_or(Quantifier::kNoLimit), Taking::kMost};
}

// One of ? * + ?? *? +?, which repeat alike whatever they repeat.
bool IsPlain(const Quantifier& q) {
  return q.least <= 1 && (q.most == 1 || q.most == Quantifier::kNoLimit) && q.least != q.most &&
         q.taking != Taking::kMostAndKeep;
}

}  // namespace

std::string Quantifier::ToText() const {
  std::string out;
  if (least <= 1 && most == kNoLimit) {
    out = least == 0 ? "*" : "+";
  } else if (least == 0 && most == 1) {
    out = "?";
  } else {
    out = "{" + std::to_string(least);
    if (most != least) out += "," + (most == kNoLimit ? "" : std::to_string(most));
    out += "}";
  }
  if (taking == Taking::kLeast) out += "?";
  if (taking == Taking::kMostAndKeep) out += "+";
  return out;
}

std::optional<Quantifier> ReadQuantifier(PatternCursor* in) {
  Quantifier out;
  bool can_keep = true;
  bool can_be_lazy = true;
  switch (in->Peek()) {
    case '?':
      out.most = 1;
      break;
    case '*':
      break;
    case '+':
      out.least = 1;
      break;
    case '{': {
      bool is_one_number = false;
      std::optional<Quantifier> interval = ReadInterval(in, &is_one_number);
      if (!interval) return std::nullopt;
      out = *interval;
      --in->at;
      // In Oniguruma a plus repeats what {n,m} repeated, and a question mark makes optional what {n} did.
      can_keep = !in->is_oniguruma();
      can_be_lazy = !in->is_oniguruma() || !is_one_number;
      if (in->is_oniguruma() && out.least > out.most) {
        std::swap(out.least, out.most);
        out.taking = Taking::kMostAndKeep;
        can_be_lazy = false;
      }
      break;
    }
    default:
      return std::nullopt;
  }
  ++in->at;
  if (can_be_lazy && in->Take("?")) {
    out.taking = Taking::kLeast;
  } else if (can_keep && in->Take("+")) {
    out.taking = Taking::kMostAndKeep;
  }
  return out;
}

NestedQuantifiers Simplified(const Quantifier& inner, const Quantifier& outer) {
  constexpr uint32_t kNoLimit = Quantifier::kNoLimit;
  if (!IsPlain(inner) || !IsPlain(outer)) return {inner, outer};
  const Quantifier widest{std::min(inner.least, outer.least), std::max(inner.most, outer.most),
                          inner.taking};
  if (inner.taking == outer.taking) return {widest, std::nullopt};
  if (inner.taking == Taking::kLeast) {
    if (inner.least == 0) return {{0, widest.most, Taking::kLeast}, std::nullopt};
    if (outer.most == kNoLimit) return {outer, std::nullopt};
    return {inner, outer};  // +??
  }
  if (inner.most == 1) {
    if (outer.least == 1) return {inner, outer};  // ?+?
    return {outer, std::nullopt};
  }
  if (outer.least == 1) return {inner, std::nullopt};
  // Nothing, or as many as there are.
  return {{1, kNoLimit, Taking::kMost}, Quantifier{0, 1, Taking::kLeast}};
}

}  // namespace portico::tokenizer
