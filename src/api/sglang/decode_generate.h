// The body of POST /generate (SGLang's GenerateReqInput) as a native request.
#pragma once

#include <simdjson.h>

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "message/native_generate.h"

namespace portico::api::sglang {

// INVALID_ARGUMENT naming the field for wrong types and ranges, for keys of sampling_params that
// nobody knows, and for what this server cannot honour. Unknown fields of the body are only noted,
// as in OpenAI's routes.
StatusOr<NativeGenerateRequest> DecodeGenerate(const std::string& body,
                                               simdjson::dom::parser& parser,
                                               std::vector<std::string>* unknown_fields);

// Looks at a request whose prompts have not been read: they are long, and its parameters alone may cost too much. `prompts`:
// how many there are.
using NativeCheck = std::function<Status(const NativeGenerateRequest& request, size_t prompts)>;
// Asks `check` about a body without reading its prompts. What is wrong otherwise may be passed over.
Status CheckLongGenerate(const std::string& body, simdjson::dom::parser& parser,
                         const NativeCheck& check);

}  // namespace portico::api::sglang
