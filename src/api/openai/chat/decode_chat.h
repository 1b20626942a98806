// The body of POST /v1/chat/completions → ChatRequest.
#pragma once

#include <simdjson.h>

#include <string>
#include <vector>

#include "api/common/generation_fields.h"
#include "base/status.h"
#include "message/text_request.h"

namespace portico::api::openai {

// Reads and checks everything that can be known without the model. Errors are INVALID_ARGUMENT and
// name the top-level field; a body that is no JSON object names none. Fields of OpenAI or SGLang
// that cannot be honoured are refused unless they have their default; names of nobody are ignored
// and, if `unknown_fields` is not null, appended to it (the first few).
//
// `parser` is the caller's scratch space, one a thread. Nothing in the result refers to it or to
// `body`. `body` is parsed in place where its capacity has simdjson's padding, else it is copied.
//
// Messages come out in one form: roles in lower case; members that are null are left out, but `content`, which is null
// where an assistant only calls tools; refusal parts as text; thinking parts as `reasoning_content`. `arguments` of tool
// calls stay as they were sent, text or object (template/fit_conversation.h).
StatusOr<ChatRequest> DecodeChat(const std::string& body, simdjson::dom::parser& parser,
                                 std::vector<std::string>* unknown_fields = nullptr);

// The same for answers by an engine that may take media: such parts go to the extras' media, and {"type": "image"} and the like
// stay in their place.
StatusOr<ChatRequest> DecodeChatWithMedia(const std::string& body, simdjson::dom::parser& parser,
                                          std::vector<std::string>* unknown_fields);

// Asks `check` about a body without reading its messages and tools. What is wrong otherwise may be passed over.
Status CheckLongChat(const std::string& body, simdjson::dom::parser& parser,
                     const OptionsCheck& check);

}  // namespace portico::api::openai
