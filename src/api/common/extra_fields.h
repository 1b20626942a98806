// Fields of requests that only some engines honour (message/request_extras.h): adapters, sessions, ranks and the like.
// What a model's engine lacks is refused when the request is planned (service/plan/capability_checks.h).
#pragma once

#include <memory>
#include <string_view>

#include "api/common/field_reader.h"
#include "base/status.h"
#include "message/request_extras.h"

namespace portico::api {

// Whether `name` is one of them.
bool IsExtraField(std::string_view name);
// Whether SGLang takes a list of it, one a prompt.
bool IsPerPromptExtra(std::string_view name);

// Reads one of them; null and what stands for nothing leaves `extras` as it is, even null. A list of a per-prompt field
// must have one value, or values that are alike.
Status ReadExtraField(std::string_view name, Element value,
                      std::shared_ptr<const RequestExtras>* extras);

// Rows of numbers, all of one length, in place of token ids.
Status ReadEmbeddingRows(std::string_view name, Element rows, RequestExtras* extras);

}  // namespace portico::api
