// What a voice that only reads aloud refuses.
#pragma once

#include <string_view>

#include "base/status.h"
#include "pipeline/request.h"

namespace portico::pipeline {

// "en", "en-GB", "en_us", "English".
bool IsEnglish(std::string_view language);

// INVALID_ARGUMENT (field "instructions" or "language") where the request wants a manner of speech,
// or another language than English of a voice that speaks only that. Voices that are not English
// are chosen by name.
Status CheckManner(const Request& request, bool english);

}  // namespace portico::pipeline
