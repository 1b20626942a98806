// Where streams in Ogg end (RFC 3533, section 6).
#pragma once

#include <string_view>

namespace portico::media {

// Whether an Ogg file breaks off: its last page is cut, or is not marked as the last of its stream.
bool OggIsCut(std::string_view bytes);

}  // namespace portico::media
