// Any message of the wire from values, checked against its layout: what leaves here is what the package's own decoder
// takes, or nothing leaves. One wrong byte ends SGLang's engine, so nothing is guessed. Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "message/sglang/schema.h"
#include "message/sglang/value.h"

namespace portico::sglang {

enum class Length {
  kShortest,  // trailing fields with their defaults are left out
  kFull,      // every field, as SGLang itself writes
};

struct EncodeOptions {
  Length length = Length::kShortest;
  // Buffers as arrays, which every release takes, even where the package writes extensions.
  bool list_buffers = true;
};

// A whole message: `fields` is a map by field name. INVALID_ARGUMENT names the field that is missing, unknown to the
// package or of the wrong type (its path within the message); FAILED_PRECONDITION: the package has no such message.
StatusOr<std::string> EncodeMessage(const Schema& schema, std::string_view name,
                                    const Value& fields, const EncodeOptions& options = {});

// One value of a type, appended to `out`; after an error `out` has part of it.
Status EncodeValue(const Schema& schema, const Type& type, const Value& value,
                   const EncodeOptions& options, std::string* out);

}  // namespace portico::sglang
