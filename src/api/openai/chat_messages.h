// Checks and normalizes what chat requests carry for the template: messages, tools, template
// variables.
#pragma once

#include <string>

#include "base/status.h"
#include "text/json.h"

namespace portico::api::openai {

// Brings a client's messages into the form that decode_chat.h describes. Errors name the field
// "messages" and the place in their text.
Status NormalizeMessages(Json* messages);

// An array of {"type":"function","function":{"name",…}}; errors name "tools".
Status CheckTools(const Json& tools);

}  // namespace portico::api::openai
