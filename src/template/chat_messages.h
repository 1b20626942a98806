// What happens to a conversation before a template sees it, as in transformers' apply_chat_template.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "text/json.h"

namespace portico::jinja {

// Whether PrepareMessages() would change nothing: the common case, which needs no copy.
bool IsPrepared(const JsonArray& messages, bool keep_null_content);

// Members that are null go, but for `content` if it is kept; reasoning_content, thinking and reasoning stand for each other.
JsonArray PrepareMessages(const JsonArray& messages, bool keep_null_content);

// Continuing the last message: a tag behind its text shows in the render where to cut.
struct Continuation {
  std::string text;  // the message's own text
};
// Tags the last of the prepared messages. INVALID_ARGUMENT where there is nothing to continue.
StatusOr<Continuation> TagLastMessage(std::string_view field, std::string_view template_source,
                                      JsonArray* messages);
// Cuts the render at the tag. INVALID_ARGUMENT where the template left the message out.
Status CutAtTag(const Continuation& continuation, std::string* rendered);

}  // namespace portico::jinja
