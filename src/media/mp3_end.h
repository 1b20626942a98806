// Where the frames of MP3 end (ISO 11172-3 and 13818-3, layer III).
#pragma once

#include <cstddef>
#include <string_view>

namespace portico::media {

// Whether an MP3 file breaks off: its last frame is cut, or there are fewer frames than its head tells (Xing's and
// LAME's, Fraunhofer's VBRI). False where that cannot be told: something else is between frames, or their size is free.
bool Mp3IsCut(std::string_view bytes);

// What tells a frame's size.
inline constexpr size_t kMp3FrameHead = 4;
// Bytes of the frame that begins there; 0: none does, or its size is free.
size_t Mp3FrameBytes(std::string_view bytes);

}  // namespace portico::media
