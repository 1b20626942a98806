// The events of OpenAI's realtime beta ("OpenAI-Beta: realtime=v1") → those of the GA API and back.
#pragma once

#include <string>
#include <string_view>

#include "api/openai/realtime/session_config.h"
#include "text/json.h"

namespace portico::api::openai {

// A client's event as GA clients would send it; what is none of the beta's own stays as it is.
Json FromBeta(Json event);

// A server's event as clients of the beta expect it; false: they have no such event. `config` is the
// session's.
bool ToBeta(const RealtimeConfig& config, std::string* type, JsonObject* members);

}  // namespace portico::api::openai
