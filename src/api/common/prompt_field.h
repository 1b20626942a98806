// Fields that take one text or several, as texts or as token ids.
#pragma once

#include <vector>

#include "api/common/field_reader.h"
#include "message/text_request.h"

namespace portico::api {

// The most prompts of one request for text.
inline constexpr size_t kMaxPrompts = 4096;

enum class PromptForms { kAny, kTexts, kIds };

// A string, a list of strings, a list of token ids or a list of lists of them; of these what `forms`
// allows, and at most `max`. Errors name the field and the place in it. `is_list`: several were
// given, or could have been.
Status ReadPrompts(std::string_view name, Element value, PromptForms forms,
                   std::vector<CompletionRequest::Prompt>* prompts, bool* is_list,
                   size_t max = kMaxPrompts);

// How many such a field holds that is left out; 1 where it is none of the forms.
size_t CountPrompts(const std::vector<LeftOutMember>& left_out, std::string_view name);

}  // namespace portico::api
