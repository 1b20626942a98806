// Python dicts in the arena: any hashable key, insertion order, 1 == 1.0 == True.
#pragma once

#include <string_view>

#include "template/value/arena.h"
#include "template/value/value.h"

namespace portico::jinja {

uint64_t HashText(std::string_view text);
// Throws Failure for values that cannot be keys.
uint64_t HashKey(Value key);
// Equality of two keys that have been hashed.
bool SameKey(Value a, Value b);

// The value, or null.
const Value* DictFind(const Dict* dict, Value key);
const Value* DictFind(const Dict* dict, std::string_view key);
// Replaces the value in its place or appends the pair.
void DictSet(Dict* dict, Value key, Value value, Arena* arena);

// The member of a dict of the context, or null.
const Json* JsonFind(const JsonObject& object, std::string_view key);

}  // namespace portico::jinja
