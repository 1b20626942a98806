#include "parser/reasoning/reasoning_splitter.h"

#include <algorithm>
#include <utility>

namespace portico::parser {
namespace {

using Kind = MarkerSet::Kind;

std::vector<std::string> StrayEnds(const ReasoningFamily& family) {
  return family.drop_stray_ends ? family.ends : std::vector<std::string>();
}

}  // namespace

ReasoningSplitter::Compiled::Compiled(ReasoningFamily from)
    : family(std::move(from)),
      outside(JoinMarkers(family.starts, JoinMarkers(StrayEnds(family), family.dropped)),
              family.suffixed),
      after(JoinMarkers(StrayEnds(family), family.dropped), family.suffixed),
      begins(family.starts, family.suffixed),
      inside(JoinMarkers(family.ends, family.calls), family.suffixed) {}

ReasoningSplitter::ReasoningSplitter(std::shared_ptr<const Compiled> family, bool inside,
                                     Target* target)
    : family_(std::move(family)),
      target_(target),
      at_(inside ? At::kInside : At::kOutside),
      fresh_(inside) {
  const std::string& before = family_->family.before_content;
  if (!before.empty()) target_->OnContent(before);
}

void ReasoningSplitter::Feed(std::string_view text) {
  if (passes_ && waiting_.empty()) return target_->OnContent(text);
  std::string joined;
  if (waiting_.empty()) {
    rest_ = text;
  } else {
    joined.swap(waiting_);
    joined.append(text);
    rest_ = joined;
  }
  while (!rest_.empty() && Step()) {
  }
  waiting_.assign(rest_);
  rest_ = {};
}

void ReasoningSplitter::Finish() {
  final_ = true;
  std::string left;
  left.swap(waiting_);
  rest_ = left;
  while (!rest_.empty() && Step()) {
  }
}

bool ReasoningSplitter::Step() {
  if (passes_) {
    target_->OnContent(rest_);
    rest_ = {};
    return true;
  }
  return at_ == At::kInside ? StepInside() : StepOutside();
}

void ReasoningSplitter::Reason(std::string_view text) {
  if (text.empty()) return;
  last_ = text.back();
  target_->OnReasoning(text);
}

void ReasoningSplitter::Leave() {
  target_->OnReasoningEnd();
  at_ = family_->family.again ? At::kOutside : At::kAfter;
  passes_ = at_ == At::kAfter && family_->after.empty();
}

bool ReasoningSplitter::StepInside() {
  if (fresh_) {
    size_t space = std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size());
    Reason(rest_.substr(0, space));
    rest_.remove_prefix(space);
    if (rest_.empty()) return true;
    MarkerSet::Match start = family_->begins.At(rest_, final_);
    if (start.kind == Kind::kPartial) return false;
    fresh_ = start.kind == Kind::kFound && family_->family.again;
    if (start.kind == Kind::kFound) {
      rest_.remove_prefix(start.length);
      return true;
    }
  }
  const ReasoningFamily& family = family_->family;
  MarkerSet::Match match = family_->inside.Find(rest_, final_);
  Reason(rest_.substr(0, match.begin));
  rest_.remove_prefix(match.begin);
  if (match.kind == Kind::kAbsent) return true;
  if (match.kind == Kind::kPartial) return false;
  if (match.marker < family.ends.size()) {
    rest_.remove_prefix(match.length);
    Leave();
    return true;
  }
  if (family.calls_at_line_start && last_ != '\n') {
    Reason(rest_.substr(0, match.length));
    rest_.remove_prefix(match.length);
    return true;
  }
  Leave();
  return true;
}

bool ReasoningSplitter::StepOutside() {
  const ReasoningFamily& family = family_->family;
  const bool may_start = at_ == At::kOutside;
  const MarkerSet& markers = may_start ? family_->outside : family_->after;
  MarkerSet::Match match = markers.Find(rest_, final_);
  if (match.begin > 0) target_->OnContent(rest_.substr(0, match.begin));
  rest_.remove_prefix(match.begin);
  if (match.kind == Kind::kAbsent) return true;
  if (match.kind == Kind::kPartial) return false;
  rest_.remove_prefix(match.length);
  if (may_start && match.marker < family.starts.size()) {
    at_ = At::kInside;
    fresh_ = family.again;
    last_ = '\n';
  }
  return true;
}

}  // namespace portico::parser
