// Where the frames of FLAC end (RFC 9639, section 9).
#pragma once

#include <string_view>

namespace portico::media {

// Whether the bytes of a FLAC file end within a frame, as those of an upload that broke off do where the head tells no
// length. A file that is cut between two frames is like a whole one.
bool FlacEndsWithinFrame(std::string_view bytes);

}  // namespace portico::media
