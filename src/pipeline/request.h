// A request to a pipeline, neutral of the API that it came by.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "media/encoder.h"
#include "message/text_request.h"
#include "pipeline/part.h"
#include "pipeline/reference_sound.h"
#include "text/json.h"

namespace portico::pipeline {

enum class Task { kSpeech, kTranscription, kChat };

inline std::string_view TaskName(Task task) {
  switch (task) {
    case Task::kSpeech:
      return "speech";
    case Task::kTranscription:
      return "transcription";
    default:
      return "chat";
  }
}

// How the answer sounds.
struct SpeechOptions {
  std::string voice;  // empty: the stage's own
  media::AudioFormat format = media::AudioFormat::kWav;
  int32_t sample_rate = 0;  // 0: the voice's own
  double speed = 1;         // 0.25 to 4; keeps the pitch
};

// Fields of a speech that only some voices understand: stages say which they take
// (Stage::TakesSpeechField).
inline constexpr std::string_view kSpeechFields[] = {
    "duration_tokens", "initial_codec_chunk_frames",
    "ref_audio",       "ref_text",
    "references",      "task_type",
    "token_count",     "x_vector_only_mode"};

// A voice that the answer shall imitate.
struct VoiceReference {
  std::string field;  // that names it: "ref_audio", "references", or "voice" of an uploaded one
  std::string text;   // what is said in it; empty: not told
  std::shared_ptr<const ReferenceSound> sound;

  // The field of kSpeechFields that a stage takes which gets it.
  std::string_view kind() const { return field == "references" ? "references" : "ref_audio"; }
};

struct Request {
  std::string id;
  Task task = Task::kSpeech;
  std::vector<Part> inputs;  // text to say, or files to hear; none in a stage's own process
  bool wants_text = false;   // of a chat
  bool wants_audio = false;
  SpeechOptions speech;
  std::shared_ptr<const ChatRequest> chat;  // of a chat
  // Of a chat, one for each file: the text in the messages that what is heard replaces.
  std::vector<std::string> clip_marks;
  std::string language;      // of the text or the sound, as the client names it; empty: not told
  std::string instructions;  // how the voice shall speak; or, of a transcription, what precedes it
  bool translate = false;    // a transcription in English of what is said in another language
  Json stage_params;         // an object by stage, or null
  Json stage_sampling;       // sampling parameters by stage, checked; or null
  // Of a speech or a transcription: those of every stage that samples, checked; or null.
  Json sampling;
  std::vector<VoiceReference> references;  // for stages that take such
  Json speech_fields;  // what else of kSpeechFields the client says, by name, checked; or null
  Duration timeout = Duration::zero();  // zero: the pipeline's own

  // A stage's own parameter, or null.
  const Json* Param(std::string_view stage, std::string_view name) const {
    return OfStage(stage_params, stage, name);
  }
  // How this stage shall sample, or null: not told.
  const Json* Sampling(std::string_view stage, std::string_view name) const {
    return OfStage(stage_sampling, stage, name);
  }

 private:
  static const Json* OfStage(const Json& by_stage, std::string_view stage, std::string_view name) {
    const Json* of_stage = by_stage.is_object() ? by_stage.Find(stage) : nullptr;
    return of_stage != nullptr && of_stage->is_object() ? of_stage->Find(name) : nullptr;
  }
};

}  // namespace portico::pipeline
