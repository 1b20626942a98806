// The "model" of a tokenizer.json, read without building a tree of it: it is nearly all of the file.
#pragma once

#include <simdjson.h>

#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "tokenizer/model.h"

namespace portico::tokenizer {

// Calls `visit` with the name and the JSON text of each member of the object `json`, in order.
Status ForEachField(const simdjson::padded_string_view& json,
                    const std::function<Status(std::string_view, std::string_view)>& visit);

// `json` lies in a buffer with SIMDJSON_PADDING readable bytes behind it.
StatusOr<std::unique_ptr<const Model>> ModelFromJson(std::string_view json);

}  // namespace portico::tokenizer
