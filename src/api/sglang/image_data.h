// The field image_data of /generate.
#pragma once

#include <memory>
#include <string_view>

#include "api/common/field_reader.h"
#include "base/status.h"
#include "message/request_extras.h"

namespace portico::api::sglang {

// The images of one prompt: one or a list, each a URL, a file, base64 or an object with such a `url`. Null and an empty list
// leave `extras` as it is.
Status ReadImages(std::string_view name, Element value,
                  std::shared_ptr<const RequestExtras>* extras);

}  // namespace portico::api::sglang
