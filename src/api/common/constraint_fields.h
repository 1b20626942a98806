// Fields that say what an answer must look like: OpenAI's response_format, SGLang's json_schema, regex, ebnf and
// structural_tag, vLLM's structured_outputs and guided_*.
#pragma once

#include <string>
#include <string_view>

#include "api/common/field_reader.h"
#include "base/status.h"
#include "message/text_request.h"

namespace portico::api {

// Sets the constraint, which the request must not have yet. Texts that are empty are refused, but for kJsonObject and kRegex.
Status SetConstraint(std::string_view field, Constraint constraint, GenerationOptions* options);

// Whether `name` is such a field. Then `status` says how reading it went.
bool ReadConstraintField(std::string_view name, Element value, GenerationOptions* options,
                         Status* status);

}  // namespace portico::api
