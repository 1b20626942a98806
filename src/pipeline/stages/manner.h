// What a voice that only reads aloud refuses.
#pragma once

#include "base/status.h"
#include "pipeline/request.h"

namespace portico::pipeline {

// INVALID_ARGUMENT (field "instructions" or "language") where the request wants a manner of speech,
// or another language than English of a voice that speaks only that. Voices that are not English
// are chosen by name.
Status CheckManner(const Request& request, bool english);

}  // namespace portico::pipeline
