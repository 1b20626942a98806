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
  bool HasWords() const;     // some segment has the times of its words
};

struct TranscriptForm {
  TranscriptFormat format = TranscriptFormat::kJson;
  // Of verbose_json.
  std::string_view task;      // transcribe or translate
  std::string_view language;  // of the sound, as the client told it; empty: not told
  bool segments = true;
  bool words = false;
};

// "audio/…"-less media type of the body.
std::string_view TranscriptMediaType(TranscriptFormat format);

std::string TranscriptBody(const Transcript& transcript, const TranscriptForm& form);

// `{"type":"duration","seconds":3}`, rounded up.
std::string DurationUsage(double seconds);

}  // namespace portico::api::openai
