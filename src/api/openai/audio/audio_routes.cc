#include "api/openai/audio/audio_routes.h"

#include "api/openai/audio/speech/speech_batch.h"
#include "api/openai/audio/speech/speech_handler.h"
#include "api/openai/audio/speech/speech_socket.h"
#include "api/openai/audio/transcription/transcription_handler.h"
#include "api/openai/audio/voice/voice_handlers.h"
#include "api/openai/realtime/realtime_socket.h"

namespace portico::api::openai {

void AddAudioRoutes(RouteTable& routes) {
  routes.Add("POST", "/v1/audio/speech", Access::kKey, HandleSpeech);
  routes.Add("GET", "/v1/audio/speech/stream", Access::kOpen, HandleSpeechSocket);
  routes.Add("POST", "/v1/audio/speech/batch", Access::kKey, HandleSpeechBatch);
  routes.Add("GET", "/v1/audio/speech/*", Access::kKey, HandleSpeechOutcome);
  routes.Add("GET", "/v1/realtime", Access::kOpen, HandleRealtime);
  routes.Add("GET", "/v1/audio/voices", Access::kKey, HandleVoices);
  // All clients share the voices, as they do adapters.
  routes.Add({.method = "DELETE",
              .path = "/v1/audio/voices/*",
              .access = Access::kAdmin,
              .body = BodyType::kNone,
              .handler = HandleVoiceRemoval});
  struct FormRoute {
    const char* path;
    Access access;
    RouteHandler handler;
  };
  const FormRoute forms[] = {
      {"/v1/audio/voices", Access::kAdmin, HandleVoiceUpload},
      {"/v1/audio/transcriptions", Access::kKey, HandleTranscription},
      {"/v1/audio/translations", Access::kKey, HandleTranslation},
  };
  for (const FormRoute& form : forms) {
    routes.Add({.method = "POST",
                .path = form.path,
                .access = form.access,
                .body = BodyType::kForm,
                .handler = form.handler});
  }
}

}  // namespace portico::api::openai
