// The body of POST /generate (SGLang's GenerateReqInput) as a native request.
#pragma once

#include <simdjson.h>

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

}  // namespace portico::api::sglang
