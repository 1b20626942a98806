#include "api/openai/audio/transcription/transcript.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "pipeline/stages/manner.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

// "01:02:03,456"
std::string Clock(double seconds, char point) {
  const auto ms = static_cast<int64_t>(std::llround(seconds * 1000));
  return fmt::format("{:02}:{:02}:{:02}{}{:03}", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60,
                     point, ms % 1000);
}

double Rounded(double seconds) { return std::round(seconds * 1000) / 1000; }

// Text without times is one segment, as long as the sound.
Transcript WithTimes(const Transcript& transcript) {
  Transcript whole = transcript;
  if (!whole.segments.empty()) return whole;
  pipeline::HeardPart segment;
  segment.text = std::string(absl::StripAsciiWhitespace(whole.text));
  segment.end = whole.seconds;
  if (!segment.text.empty()) whole.segments.push_back(std::move(segment));
  return whole;
}

// As OpenAI's service names it; other languages as the client did.
std::string_view LanguageOf(const TranscriptForm& form) {
  return form.language.empty() || pipeline::IsEnglish(form.language) ? "english" : form.language;
}

std::string Verbose(const Transcript& given, const TranscriptForm& form) {
  const Transcript transcript = WithTimes(given);
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("task").String(form.task).Key("language").String(LanguageOf(form));
  w.Key("duration").Double(Rounded(transcript.seconds)).Key("text").String(transcript.Text());
  if (form.segments) {
    w.Key("segments").BeginArray();
    for (size_t i = 0; i < transcript.segments.size(); ++i) {
      const pipeline::HeardPart& segment = transcript.segments[i];
      w.BeginObject().Key("id").Int(static_cast<int64_t>(i));
      w.Key("start").Double(Rounded(segment.begin)).Key("end").Double(Rounded(segment.end));
      w.Key("text").String(segment.text).EndObject();
    }
    w.EndArray();
  }
  if (form.words) {
    w.Key("words").BeginArray();
    for (const pipeline::HeardPart& segment : transcript.segments) {
      for (const pipeline::WordTime& word : segment.words) {
        w.BeginObject().Key("word").String(word.word);
        w.Key("start").Double(Rounded(word.begin)).Key("end").Double(Rounded(word.end));
        w.EndObject();
      }
    }
    w.EndArray();
  }
  w.Key("usage").Raw(DurationUsage(transcript.seconds)).EndObject();
  return body;
}

}  // namespace

std::string Transcript::Text() const {
  if (segments.empty()) return text;
  std::string joined;
  for (const pipeline::HeardPart& segment : segments) {
    if (!joined.empty()) joined += ' ';
    joined += segment.text;
  }
  return joined;
}

bool Transcript::HasWords() const {
  return std::any_of(segments.begin(), segments.end(),
                     [](const pipeline::HeardPart& segment) { return !segment.words.empty(); });
}

std::string_view TranscriptMediaType(TranscriptFormat format) {
  switch (format) {
    case TranscriptFormat::kText:
    case TranscriptFormat::kSrt:
      return "text/plain; charset=utf-8";
    case TranscriptFormat::kVtt:
      return "text/vtt; charset=utf-8";
    default:
      return "application/json";
  }
}

std::string DurationUsage(double seconds) {
  return fmt::format("{{\"type\":\"duration\",\"seconds\":{}}}",
                     static_cast<int64_t>(std::ceil(seconds)));
}

std::string TranscriptBody(const Transcript& transcript, const TranscriptForm& form) {
  std::string body;
  JsonWriter w(&body);
  switch (form.format) {
    case TranscriptFormat::kText:
      // As OpenAI's service: text of segments ends its line; other text is as it came.
      return transcript.segments.empty() ? transcript.text : transcript.Text() + "\n";
    case TranscriptFormat::kVerboseJson:
      return Verbose(transcript, form);
    case TranscriptFormat::kSrt:
      for (size_t i = 0; i < transcript.segments.size(); ++i) {
        const pipeline::HeardPart& segment = transcript.segments[i];
        body += fmt::format("{}\n{} --> {}\n{}\n\n", i + 1, Clock(segment.begin, ','),
                            Clock(segment.end, ','), segment.text);
      }
      return body;
    case TranscriptFormat::kVtt:
      body = "WEBVTT\n\n";
      for (const pipeline::HeardPart& segment : transcript.segments) {
        body += fmt::format("{} --> {}\n{}\n\n", Clock(segment.begin, '.'), Clock(segment.end, '.'),
                            segment.text);
      }
      return body;
    default:
      w.BeginObject().Key("text").String(transcript.Text());
      w.Key("usage").Raw(DurationUsage(transcript.seconds)).EndObject();
      return body;
  }
}

}  // namespace portico::api::openai
