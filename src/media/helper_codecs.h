// What libav decodes, in a program of its own (helper.h).
#pragma once

#include <string_view>

#include "base/status.h"
#include "media/sound.h"
#include "media/wav.h"

namespace portico::media {

// M4A, WebM and AAC: `name` is the format's in errors. As DecodeAudio().
StatusOr<Sound> DecodeByHelper(std::string_view bytes, std::string_view name,
                               const AudioLimits& limits);

}  // namespace portico::media
