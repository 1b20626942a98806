// Finds out what a chat template does with a conversation, by rendering small ones.
#pragma once

#include "template/template.h"
#include "template/template_facts.h"

namespace portico {

// `tokens`: the special tokens as variables. `with_tools`: for requests that offer tools, which a template may treat in
// another way altogether. At most some 300 renders of up to eight short messages, each with limits of its own; after a few that
// reach them the rest stays unknown.
TemplateFacts ProbeTemplate(const Template& chat_template, const Template::Variables& tokens,
                            bool with_tools);

}  // namespace portico
