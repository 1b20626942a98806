#include "api/openai/realtime/open_session.h"

#include <string>
#include <string_view>

#include "api/openai/audio/pipeline_call.h"
#include "api/query.h"
#include "api/reply.h"

namespace portico::api::openai {
namespace {

// By the header, or by the subprotocol of a browser, which can set none.
bool SpeaksBeta(const net::HttpRequest& request) {
  return request.Header("openai-beta").find("realtime=v1") != std::string_view::npos ||
         request.Header("sec-websocket-protocol").find("openai-beta.realtime-v1") !=
             std::string_view::npos;
}

}  // namespace

Status OpenSession(const net::HttpRequest& request, const ApiContext& api,
                   const pipeline::Pipeline& pipeline, RealtimeConfig* config) {
  config->id = "sess_" + NewRequestId();
  if (!pipeline.ResolveVoice(config->voice).ok()) config->voice = "default";
  config->beta = SpeaksBeta(request);
  const auto intent = QueryValue(request.query, "intent");
  const std::string meant = intent.ok() ? intent->value_or("") : "?";
  config->transcription = meant == "transcription";
  if (!meant.empty() && meant != "conversation" && !config->transcription) {
    return InvalidArgument("intent", "intent must be conversation or transcription");
  }
  PORTICO_RETURN_IF_ERROR(pipeline.CheckServes(
      config->transcription ? pipeline::Task::kTranscription : pipeline::Task::kChat));
  const auto name = QueryValue(request.query, "model");
  const std::string asked = name.ok() ? name->value_or("") : "";
  const auto model = api.models->FindForRequest(asked);
  const std::string& own = pipeline.config().name;
  if (model.ok()) {
    config->model = (*model)->id;
  } else if (pipeline.thinks() && (api.models->MeansDefault(asked) || asked == own)) {
    config->model = own;
  } else if (model.status().code() == StatusCode::kNotFound) {
    return NoSuchModel(api, asked, pipeline.thinks());
  } else {
    return model.status();
  }
  return OkStatus();
}

}  // namespace portico::api::openai
