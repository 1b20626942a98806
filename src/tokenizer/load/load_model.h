// The "model" of a tokenizer.json, read without building a tree of it: it is nearly all of the file.
#pragma once

#include <simdjson.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/model/model.h"

namespace portico::tokenizer {

using FieldVisitor = std::function<Status(std::string_view name, std::string_view json)>;
// The members of the file's model, each as JSON text with SIMDJSON_PADDING readable bytes behind it.
using ModelFields = std::map<std::string, std::string_view, std::less<>>;

// Calls `visit` with the name and the JSON text of each member of the object `json`, in order. With `model`, that gets
// the member "model", which must be an object and is not visited: nearly all of the file is walked once.
Status ForEachField(const simdjson::padded_string_view& json, const FieldVisitor& visit,
                    ModelFields* model = nullptr);

StatusOr<std::unique_ptr<const Model>> ModelFromFields(const ModelFields& fields);

}  // namespace portico::tokenizer
