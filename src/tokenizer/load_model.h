// The "model" of a tokenizer.json, read without building a tree of it: it is nearly all of the file.
#pragma once

#include <simdjson.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tokenizer/model.h"

namespace portico::tokenizer {

using FieldVisitor = std::function<Status(std::string_view name, std::string_view json)>;

// Calls `visit` with the name and the JSON text of each member of the object `json`, in order. With `visit_model`, the
// member "model" is an object, whose members that is called with: a large model is walked once.
Status ForEachField(const simdjson::padded_string_view& json, const FieldVisitor& visit,
                    const FieldVisitor& visit_model = nullptr);

// The model's members, each as JSON text with SIMDJSON_PADDING readable bytes behind it.
using ModelFields = std::map<std::string, std::string_view, std::less<>>;
StatusOr<std::unique_ptr<const Model>> ModelFromFields(const ModelFields& fields);

}  // namespace portico::tokenizer
