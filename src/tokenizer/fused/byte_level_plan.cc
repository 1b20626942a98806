#include <string>

#include "tokenizer/split/pre_tokenizer.h"
#include "tokenizer/split/scanners.h"

namespace portico::tokenizer {
namespace {

using Kind = ByteLevelPlan::Kind;

// A Split that isolates a known pattern.
KnownPattern IsolatedPattern(const Json& step) {
  const Json* pattern = step.Find("pattern");
  if (step.GetString("type") != "Split" || pattern == nullptr ||
      step.GetString("behavior") != "Isolated" || step.GetBool("invert", true)) {
    return KnownPattern::kNone;
  }
  return RecognizePattern(pattern->GetString("Regex"), /*fancy=*/false);
}

bool IsByteLevel(const Json& step, bool use_regex) {
  return step.GetString("type") == "ByteLevel" && step.GetBool("use_regex", true) == use_regex;
}

Kind KindOf(KnownPattern pattern) {
  switch (pattern) {
    case KnownPattern::kGpt2:
      return Kind::kGpt2;
    case KnownPattern::kCl100k:
      return Kind::kCl100k;
    case KnownPattern::kQwen2:
      return Kind::kQwen2;
    case KnownPattern::kO200k:
      return Kind::kO200k;
    default:
      return Kind::kNone;
  }
}

}  // namespace

ByteLevelPlan PlanOfPattern(KnownPattern pattern) {
  ByteLevelPlan plan;
  plan.kind = KindOf(pattern);
  return plan;
}

ByteLevelPlan PlanByteLevel(const Json& json) {
  ByteLevelPlan plan;
  const Json* list = json.Find("pretokenizers");
  JsonArray steps;
  if (list != nullptr && list->is_array()) {
    steps = list->as_array();
  } else {
    steps.push_back(json);
  }
  if (steps.size() == 1 && steps[0].GetString("type") == "ByteLevel") {
    plan.kind = IsByteLevel(steps[0], true) ? Kind::kGpt2 : Kind::kWhole;
    plan.add_prefix_space = steps[0].GetBool("add_prefix_space", false);
    return plan;
  }
  if (steps.empty() || !IsByteLevel(steps.back(), false) ||
      steps.back().GetBool("add_prefix_space", false)) {
    return plan;
  }
  if (steps.size() == 2) {
    plan.kind = KindOf(IsolatedPattern(steps[0]));
  } else if (steps.size() == 4 && IsolatedPattern(steps[0]) == KnownPattern::kNumbers3 &&
             IsolatedPattern(steps[1]) == KnownPattern::kDeepSeekCjk &&
             IsolatedPattern(steps[2]) == KnownPattern::kDeepSeekWord) {
    plan.kind = Kind::kDeepSeekV3;
  }
  return plan;
}

}  // namespace portico::tokenizer
