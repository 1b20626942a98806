// Fields of OpenAI's and SGLang's requests that cannot be honoured yet. They are refused when set
// to something other than their default (serve-contract: never ignored).
#pragma once

#include <string_view>

#include "api/openai/field_reader.h"
#include "base/status.h"

namespace portico::api::openai {

// Whether `name` is one of them; then `status` says whether its value is a default.
bool IsRefusedField(std::string_view name, Element value, Status* status);

}  // namespace portico::api::openai
