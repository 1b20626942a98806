#include "api/openai/audio/chat/audio_answers.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "api/openai/audio/chat_stage_fields.h"
#include "base/clock.h"

namespace portico::api::openai {
namespace {

// What was said in that sound.
StatusOr<std::string> TranscriptOf(const Json& audio, const pipeline::Transcripts& transcripts,
                                   size_t message) {
  const auto bad = [message](std::string_view why) {
    return InvalidArgument("messages", fmt::format("messages[{}].audio.id {}", message, why));
  };
  const Json* id = audio.is_object() ? audio.Find("id") : nullptr;
  if (id == nullptr || !id->is_string()) return bad("must be a string");
  const Json* told = audio.Find("transcript");
  if (told != nullptr && told->is_string()) return told->as_string();
  std::optional<std::string> kept = transcripts.Find(id->as_string(), UnixSeconds());
  if (kept) return *std::move(kept);
  return bad(
      "is not the id of an answer that is still stored here: send its transcript as the content");
}

}  // namespace

StatusOr<bool> TakeAudioAnswers(const pipeline::Transcripts& transcripts, Json* messages) {
  bool changed = false;
  for (size_t m = 0; m < messages->as_array().size(); ++m) {
    Json& message = messages->as_array()[m];
    if (!message.is_object() || message.GetString("role") != "assistant") continue;
    const Json audio = TakeMember("audio", &message);
    if (audio.is_null()) continue;
    changed = true;
    const Json* content = message.Find("content");
    const bool empty = content == nullptr || content->is_null() ||
                       (content->is_string() && content->as_string().empty()) ||
                       (content->is_array() && content->as_array().empty());
    if (!empty) continue;
    PORTICO_ASSIGN_OR_RETURN(std::string text, TranscriptOf(audio, transcripts, m));
    message.Set("content", Json(std::move(text)));
  }
  return changed;
}

}  // namespace portico::api::openai
