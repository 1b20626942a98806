// Names of tools that a form of calls can hold.
#pragma once

#include "base/status.h"
#include "parser/tool/call_forms.h"
#include "parser/tool/families.h"
#include "text/json.h"

namespace portico {

// A form that writes names as plain text has no escapes: where a name would end early, the model's call would be read as
// text. Refuses such tools, each in the form of chat completions or a function alone.
Status CheckCallNames(const parser::ToolFamily& family, const parser::CallForm& form,
                      const Json& tools);

}  // namespace portico
