// What the schema compiler has to know of single keywords: types, simple values, and what negates them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "grammar/schema/document.h"
#include "text/json.h"

namespace portico::grammar {

// Sets of JSON Schema's types. A number is an integer or a fraction.
enum TypeBit : uint8_t {
  kNull = 1,
  kBoolean = 2,
  kObject = 4,
  kArray = 8,
  kInteger = 16,
  kFraction = 32,
  kString = 64,
};
inline constexpr uint8_t kNumber = kInteger | kFraction;
inline constexpr uint8_t kAnyType = 127;

// The set that a schema's `type` names; kAnyType without one.
StatusOr<uint8_t> TypesOf(const SchemaDocument& document, const Json* schema);
uint8_t TypeOfValue(const Json& value);

// A keyword that is a count; absent: nullopt.
StatusOr<std::optional<int64_t>> CountOf(const SchemaDocument& document, const Json* schema,
                                         std::string_view keyword);

// INVALID_ARGUMENT if a keyword of the schema has a value of the wrong shape, or is one that nothing here can express.
Status CheckKeywords(const SchemaDocument& document, const Json* schema);

// INVALID_ARGUMENT if the schema, or one in it, is none by JSON Schema's own rules or refers to what the document does not have;
// nothing is said of what can be expressed.
Status CheckWellFormed(const SchemaDocument& document, const Json* schema);

// A schema for what `schema` does not allow. Of constants only `{"not": …}` itself remains.
StatusOr<Json> Negated(const SchemaDocument& document, const Json* schema, int depth = 0);

// Whether `not` stands before constants alone, which only finite sets of values can honour.
bool IsNotConstant(const Json& negated);

// Equal as JSON Schema has it: 1 is 1.0, and members have no order.
bool SameValue(const Json& a, const Json& b);

}  // namespace portico::grammar
