// One request of `portico render --jsonl`: a JSON object in, a JSON object out.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "template/chat_template.h"
#include "text/json.h"
#include "tokenizer/load/tokenizer_config.h"
#include "tokenizer/tokenizer.h"

namespace portico {

// Where the templates of requests come from. Exactly one of the first three is set.
struct RenderSetup {
  bool from_request = false;                   // each request brings template and context
  std::shared_ptr<const Template> raw;         // the messages reach the template untouched
  std::shared_ptr<const ChatTemplate> chat;    // as apply_chat_template does it
  std::shared_ptr<const Tokenizer> tokenizer;  // beside `chat`: for ids and masks; or null
  TokenizerConfig config;
};

// {"id", "text", …} or {"id", "error"}.
std::string AnswerRenderLine(const RenderSetup& setup, std::string_view line);

// The text of a conversation: an object with "messages" and the other fields of a request, or the
// list of messages itself.
StatusOr<std::string> RenderConversation(const RenderSetup& setup, const Json& conversation,
                                         bool add_generation_prompt);

}  // namespace portico
