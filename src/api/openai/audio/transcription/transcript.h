// What was heard → the bodies of /v1/audio/transcriptions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pipeline/part.h"

namespace portico::api::openai {

enum class TranscriptFormat { kJson, kText, kVerboseJson, kSrt, kVtt };

struct Transcript {
  std::vector<pipeline::HeardPart> segments;
  std::string text;    // of a pipeline that tells no times, instead of segments
  double seconds = 0;  // of the audio

  std::string Text() const;  // segments with spaces between
};

// "audio/…"-less media type of the body.
std::string_view TranscriptMediaType(TranscriptFormat format);

// `words`, `segments`: what verbose_json has besides the text.
std::string TranscriptBody(const Transcript& transcript, TranscriptFormat format,
                           std::string_view task, bool segments, bool words);

// `{"type":"duration","seconds":3}`, rounded up.
std::string DurationUsage(double seconds);

}  // namespace portico::api::openai
