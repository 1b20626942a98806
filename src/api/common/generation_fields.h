// The fields that chat and completion requests share.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "api/common/field_reader.h"
#include "base/status.h"
#include "message/text_request.h"
#include "text/json_outline.h"

namespace portico::api {

// Looks at a request whose prompts have not been read: they are long, and its options alone may cost too much. `prompts`:
// how many there are.
using OptionsCheck = std::function<Status(const GenerationOptions& options, size_t prompts)>;

// Options under construction, and what the checks across fields need to know.
struct GenerationDraft {
  GenerationOptions options;
  bool has_stream_options = false;
};

// Reads one of the shared fields, or refuses one that cannot be honoured; notes others as unknown.
Status ReadSharedField(std::string_view name, Element value, GenerationDraft* draft,
                       std::vector<std::string>* unknown_fields);

// Of members that an outline has left out: the shared fields that hold too many values, before one of them is read.
Status CheckLeftOut(const std::vector<LeftOutMember>& left_out);

// Checks across fields, after the last one.
Status CheckGeneration(const GenerationDraft& draft);

using portico::kTopLogprobs;

}  // namespace portico::api
