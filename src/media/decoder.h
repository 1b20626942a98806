// The bytes of an audio file → sound, within limits.
#pragma once

#include <string_view>

#include "base/status.h"
#include "media/sound.h"
#include "media/wav.h"

namespace portico::media {

// What the bytes are by the first of them: WAV, FLAC, Ogg, MP3, M4A, WebM or AAC; empty: none of these.
std::string_view AudioContainer(std::string_view bytes);

// WAV, FLAC, Ogg (Opus, Vorbis), MP3, and in a process of its own M4A, WebM and AAC, told by their
// first bytes; channels are averaged. Decoding
// stops at limits.max_seconds. INVALID_ARGUMENT (no field) tells what is wrong with the bytes;
// UNAVAILABLE (reason "decoder_missing") names the library that is not installed. Blocks for about
// a millisecond for each second of sound.
StatusOr<Sound> DecodeAudio(std::string_view bytes, const AudioLimits& limits);

}  // namespace portico::media
