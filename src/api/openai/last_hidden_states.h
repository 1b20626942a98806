// The hidden states of an answer as SGLang's OpenAI routes give them: of each choice those of its last token.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "message/text_delta.h"
#include "message/text_request.h"

namespace portico::api::openai {

class LastHiddenStates {
 public:
  explicit LastHiddenStates(const GenerationOptions& options);

  // Keeps what the delta carries, where the request wants it.
  void Note(const TextDelta& delta);
  // Whether the choice has any.
  bool Has(size_t choice) const {
    return choice < by_choice_.size() && by_choice_[choice] != nullptr;
  }
  // Appends `"hidden_states":[…]` of a choice that has any: with true an empty list where only the prompt was computed.
  void AppendMember(size_t choice, std::string* out) const;

 private:
  bool wanted_ = false;
  bool only_last_ = false;
  std::vector<std::shared_ptr<const DeltaExtras>> by_choice_;
};

}  // namespace portico::api::openai
