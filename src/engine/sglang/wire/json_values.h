// JSON, as control routes take and give it, and values of the wire. Pure; any thread.
#pragma once

#include <string_view>

#include "base/status.h"
#include "message/sglang/schema.h"
#include "message/sglang/value.h"
#include "text/json.h"

namespace portico::sglang {

// The value that a declared type makes of JSON: bytes come from Base64, floats from any number. INVALID_ARGUMENT names
// `field` where the type has no such value; what a type allows beyond its kind is checked when it is encoded.
StatusOr<Value> ValueOfJson(const Type& type, const Json& json, std::string_view field);

// The fields of a message, as its layout types them. INVALID_ARGUMENT names one that it does not have.
StatusOr<Map> FieldsOfJson(const StructLayout& layout, const Json& object);

// Bytes become Base64, buffers lists of numbers, NaN null.
Json JsonOfValue(const Value& value);

}  // namespace portico::sglang
