#include "api/openai/audio/audio_routes.h"

#include <utility>

#include "api/openai/audio/speech_batch.h"
#include "api/openai/audio/speech_handler.h"
#include "api/openai/audio/speech_socket.h"
#include "api/openai/audio/transcription_handler.h"
#include "api/openai/audio/voice_handlers.h"
#include "api/openai/realtime/realtime_socket.h"

namespace portico::api::openai {

void AddAudioRoutes(RouteTable& routes) {
  routes.Add("POST", "/v1/audio/speech", Access::kKey, HandleSpeech);
  routes.Add("GET", "/v1/audio/speech/stream", Access::kOpen, HandleSpeechSocket);
  routes.Add("POST", "/v1/audio/speech/batch", Access::kKey, HandleSpeechBatch);
  routes.Add("GET", "/v1/audio/speech/*", Access::kKey, HandleSpeechOutcome);
  routes.Add("GET", "/v1/realtime", Access::kOpen, HandleRealtime);
  routes.Add("GET", "/v1/audio/voices", Access::kKey, HandleVoices);
  routes.Add({.method = "DELETE",
              .path = "/v1/audio/voices/*",
              .body = BodyType::kNone,
              .handler = HandleVoiceRemoval});
  const std::pair<const char*, RouteHandler> forms[] = {
      {"/v1/audio/voices", HandleVoiceUpload},
      {"/v1/audio/transcriptions", HandleTranscription},
      {"/v1/audio/translations", HandleTranslation},
  };
  for (const auto& [path, handler] : forms) {
    routes.Add({.method = "POST", .path = path, .body = BodyType::kForm, .handler = handler});
  }
}

}  // namespace portico::api::openai
