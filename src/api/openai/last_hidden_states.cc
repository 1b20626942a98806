#include "api/openai/last_hidden_states.h"

#include "text/json_writer.h"

namespace portico::api::openai {

LastHiddenStates::LastHiddenStates(const GenerationOptions& options) {
  if (options.extras == nullptr) return;
  wanted_ = options.extras->return_hidden_states;
  only_last_ = options.extras->only_last_hidden_state;
}

void LastHiddenStates::Note(const TextDelta& delta) {
  if (!wanted_ || delta.extras == nullptr || delta.extras->hidden_states.empty()) return;
  const auto choice = static_cast<size_t>(delta.index);
  if (by_choice_.size() <= choice) by_choice_.resize(choice + 1);
  by_choice_[choice] = delta.extras;
}

void LastHiddenStates::AppendMember(size_t choice, std::string* out) const {
  const std::vector<DeltaExtras::HiddenStates>& states = by_choice_[choice]->hidden_states;
  out->append("\"hidden_states\":");
  if ((only_last_ || states.size() > 1) && !states.back().rows.empty()) {
    AppendJsonFloats(states.back().rows.back(), out);
  } else {
    out->append("[]");
  }
}

}  // namespace portico::api::openai
