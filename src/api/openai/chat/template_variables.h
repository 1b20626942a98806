// Reasoning fields → variables of the chat template, as SGLang sets them.
#pragma once

#include "api/common/field_reader.h"
#include "base/status.h"
#include "text/json.h"

namespace portico::api::openai {

// What `reasoning_effort` and `reasoning` ask for; null where they do not.
struct ReasoningFields {
  Json effort;   // a name, or a number in [0, 1)
  Json enabled;  // bool
};

Status ReadReasoningEffort(std::string_view name, Element value, ReasoningFields* out);
// {"effort", "enabled"}: wins over reasoning_effort.
Status ReadReasoning(std::string_view name, Element value, ReasoningFields* out);

// Adds the variables reasoning_effort, thinking and enable_thinking to chat_template_kwargs; the
// client's own values there win. `kwargs` is an object or null, and stays null if there is nothing
// to add.
void AddReasoningVariables(const ReasoningFields& reasoning, Json* kwargs);

}  // namespace portico::api::openai
