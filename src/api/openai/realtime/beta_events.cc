#include "api/openai/realtime/beta_events.h"

#include <utility>

namespace portico::api::openai {
namespace {

struct Name {
  std::string_view ga;
  std::string_view beta;
};

constexpr Name kEvents[] = {
    {"response.output_text.delta", "response.text.delta"},
    {"response.output_text.done", "response.text.done"},
    {"response.output_audio.delta", "response.audio.delta"},
    {"response.output_audio.done", "response.audio.done"},
    {"response.output_audio_transcript.delta", "response.audio_transcript.delta"},
    {"response.output_audio_transcript.done", "response.audio_transcript.done"},
    {"conversation.item.added", "conversation.item.created"},
};

constexpr Name kFormats[] = {
    {"audio/pcm", "pcm16"}, {"audio/pcmu", "g711_ulaw"}, {"audio/pcma", "g711_alaw"}};

// Sets `audio.PART.NAME`. Where the client has given something else than objects on the way, that is left, and refused.
void SetInAudio(std::string_view part, std::string_view name, Json value, Json* ga) {
  Json* at = ga;
  for (const std::string_view step : {std::string_view("audio"), part}) {
    if (at->Find(step) == nullptr) at->Set(step, Json(JsonObject{}));
    at = at->Find(step);
    if (!at->is_object()) return;
  }
  at->Set(name, std::move(value));
}

Json FormatFrom(const Json& beta) {
  for (const Name& name : kFormats) {
    if (beta == Json(name.beta)) return Json(JsonObject{{"type", Json(name.ga)}});
  }
  return Json(JsonObject{{"type", beta}});  // refused with its name
}

// Of `session`, or of what response.create has.
Json ConfigFrom(const Json& beta) {
  if (!beta.is_object()) return beta;
  Json ga(JsonObject{});
  for (const auto& [name, value] : beta.as_object()) {
    if (name == "modalities") {
      bool audio = false;
      if (value.is_array()) {
        for (const Json& one : value.as_array()) audio = audio || one == Json("audio");
      }
      ga.Set("output_modalities", Json(JsonArray{Json(audio ? "audio" : "text")}));
    } else if (name == "input_audio_format") {
      SetInAudio("input", "format", FormatFrom(value), &ga);
    } else if (name == "output_audio_format") {
      SetInAudio("output", "format", FormatFrom(value), &ga);
    } else if (name == "input_audio_transcription") {
      SetInAudio("input", "transcription", value, &ga);
    } else if (name == "turn_detection") {
      SetInAudio("input", "turn_detection", value, &ga);
    } else if (name == "input_audio_noise_reduction") {
      SetInAudio("input", "noise_reduction", value, &ga);
    } else if (name == "voice" || name == "speed") {
      SetInAudio("output", name, value, &ga);
    } else if (name == "max_response_output_tokens") {
      ga.Set("max_output_tokens", value);
    } else {
      ga.Set(name, value);
    }
  }
  return ga;
}

Json ConfigTo(const RealtimeConfig& config, const Json& ga) {
  Json beta(JsonObject{{"id", config.id}, {"object", "realtime.session"}});
  const Json* audio = ga.Find("audio");
  const Json* input = audio == nullptr ? nullptr : audio->Find("input");
  const auto format = [](RealtimeConfig::Coding coding) {
    return Json(kFormats[static_cast<size_t>(coding)].beta);
  };
  if (!config.transcription) {
    JsonArray modalities{Json("text")};
    if (config.speaks) modalities.push_back(Json("audio"));
    beta.Set("model", config.model);
    beta.Set("modalities", Json(std::move(modalities)));
    beta.Set("instructions", config.instructions);
    beta.Set("voice", config.voice);
    beta.Set("speed", config.speed);
    beta.Set("output_audio_format", format(config.output));
    beta.Set("tools", config.tools.is_null() ? Json(JsonArray{}) : config.tools);
    beta.Set("tool_choice", config.tool_choice);
    beta.Set("temperature", config.temperature ? Json(*config.temperature) : Json());
    const Json* most = ga.Find("max_output_tokens");
    beta.Set("max_response_output_tokens", most == nullptr ? Json() : *most);
  }
  beta.Set("input_audio_format", format(config.input));
  for (const auto& [name, of_input] :
       {std::pair{"input_audio_transcription", "transcription"},
        std::pair{"turn_detection", "turn_detection"},
        std::pair{"input_audio_noise_reduction", "noise_reduction"}}) {
    const Json* value = input == nullptr ? nullptr : input->Find(of_input);
    beta.Set(name, value == nullptr ? Json() : *value);
  }
  return beta;
}

void ItemTo(Json* item) {
  Json* content = item->Find("content");
  if (content == nullptr || !content->is_array()) return;
  for (Json& part : content->as_array()) {
    const std::string type = part.GetString("type");
    if (type == "output_text") part.Set("type", Json("text"));
    if (type == "output_audio") part.Set("type", Json("audio"));
  }
}

void ResponseTo(Json* response) {
  if (!response->is_object()) return;
  for (auto& [name, value] : response->as_object()) {
    if (name == "output" && value.is_array()) {
      for (Json& item : value.as_array()) ItemTo(&item);
    }
    if (name != "output_modalities") continue;
    name = "modalities";
    if (value == Json(JsonArray{Json("audio")})) {
      value = Json(JsonArray{Json("text"), Json("audio")});
    }
  }
}

}  // namespace

Json FromBeta(Json event) {
  std::string type = event.GetString("type");
  if (type == "transcription_session.update") {
    type = "session.update";
    event.Set("type", Json(type));
  }
  const std::string_view config = type == "session.update"    ? "session"
                                  : type == "response.create" ? "response"
                                                              : "";
  if (config.empty()) return event;
  if (Json* value = event.Find(config)) *value = ConfigFrom(*value);
  return event;
}

bool ToBeta(const RealtimeConfig& config, std::string* type, JsonObject* members) {
  // The beta tells of an item once.
  if (*type == "conversation.item.done") return false;
  for (const Name& name : kEvents) {
    if (*type == name.ga) *type = name.beta;
  }
  if (config.transcription && type->starts_with("session.")) *type = "transcription_" + *type;
  for (auto& [name, value] : *members) {
    if (name == "session") value = ConfigTo(config, value);
    if (name == "item") ItemTo(&value);
    if (name == "response") ResponseTo(&value);
  }
  return true;
}

}  // namespace portico::api::openai
