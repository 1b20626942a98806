// The fields image_data, video_data and audio_data of /generate.
#pragma once

#include <memory>

#include "api/common/field_reader.h"
#include "base/status.h"
#include "message/request_extras.h"
#include "message/request_media.h"

namespace portico::api::sglang {

// The media of one kind of one prompt: one or a list, each a URL, a file, base64 or an object with such a `url`. They are added
// to those that `extras` has. Null and an empty list leave it as it is.
Status ReadMediaData(MediaKind kind, Element value, std::shared_ptr<const RequestExtras>* extras);

}  // namespace portico::api::sglang
