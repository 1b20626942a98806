// Bodies of multipart/form-data (RFC 7578): what HTML forms and clients that upload files send.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace portico::net {

struct FormPart {
  std::string name;
  std::string filename;      // empty: a plain field
  std::string content_type;  // as given, or empty
  std::string_view body;     // within the parsed body
};

// True if the content type is multipart/form-data.
bool IsForm(std::string_view content_type);

// The parts of a whole body. INVALID_ARGUMENT if the boundary is missing or invalid, the body is
// cut off, a part has no name, or there are more than 64 parts or 4 KiB of headers in one.
StatusOr<std::vector<FormPart>> ParseForm(std::string_view content_type, std::string_view body);

// The text of the plain field `name` (of several the last one, as web frameworks take it) among the
// parts that are whole in `body`, which may be cut off. Null: there is none, or this is no such
// form.
std::optional<std::string_view> FindFormText(std::string_view content_type, std::string_view body,
                                             std::string_view name);

}  // namespace portico::net
