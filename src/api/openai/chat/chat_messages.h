// Checks and normalizes what chat requests carry for the template: messages, tools, template
// variables.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "message/request_media.h"
#include "text/json.h"

namespace portico::api::openai {

// Brings a client's messages into the form that decode_chat.h describes. Errors name the field
// "messages" and the place in their text.
// `media`: takes the parts of the types image_url, video_url, audio_url and input_audio, for which {"type": "image"}, "video"
// or "audio" stays as a mark; null: they are refused.
Status NormalizeMessages(Json* messages, std::vector<MediaItem>* media = nullptr);

// An array of {"type":"function","function":{"name",…}}; errors name "tools".
Status CheckTools(const Json& tools);

}  // namespace portico::api::openai
