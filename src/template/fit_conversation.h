// From the messages of a request to those that a model's chat template shows: the one table of what follows from a template's
// facts. For servers; `portico render` gives templates what it gets.
#pragma once

#include "base/status.h"
#include "template/chat_template.h"
#include "template/template_facts.h"
#include "text/json.h"

namespace portico {

// Changes messages (an array of objects with known roles and checked members) in place, and only where the template
// needs it; but the result of a message's only call always gets the call's id if it has none. INVALID_ARGUMENT, field "messages", with place and role of the first message of which something would be
// missing from the prompt. What the template itself refuses is left to it.
Status FitConversation(const TemplateFacts& facts, Json* messages);

// Offers the tools (an array of OpenAI's, changed in place, or null) in the form that the template shows, and has it see
// the messages as FitConversation() left them.
void FitRequest(const TemplateFacts& facts, Json* tools, ChatTemplate::Request* request);

// Whether some conversations have their leading system message put before the first user message.
bool MovesSystem(const TemplateFacts& facts);

}  // namespace portico
