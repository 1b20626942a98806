// Any message of the wire to values, accepted and refused as the package's own decoder (msgspec) does. For control
// replies and for proofs; token outputs have a reader of their own (token_output.h). Pure; any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "message/sglang/schema.h"
#include "message/sglang/value.h"

namespace portico::sglang {

struct Message {
  std::string tag;  // empty: one of the plain values that SGLang takes as a message
  Value fields;     // a map by field name, with the defaults of what was left out
};

// INVALID_ARGUMENT with the place in the message for a frame that SGLang would refuse.
StatusOr<Message> DecodeMessage(const Schema& schema, std::string_view frame);

// The tag of a frame, or empty if it has none. Looks at the first bytes only.
std::string_view PeekTag(std::string_view frame);

}  // namespace portico::sglang
