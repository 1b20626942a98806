#include <algorithm>
#include <utility>

#include "pipeline/chat_json.h"
#include "pipeline/process/message.h"

namespace portico::pipeline {
namespace {

bool Takes(std::span<const std::string> speech_fields, std::string_view field) {
  return std::find(speech_fields.begin(), speech_fields.end(), field) != speech_fields.end();
}

void AddSpeechFields(const Request& request, std::span<const std::string> taken, Json* json) {
  Json references(JsonArray{});
  for (const VoiceReference& reference : request.references) {
    if (!GetsReference(reference, taken)) continue;
    const bool told = reference.kind() == "references" || Takes(taken, "ref_text");
    references.as_array().push_back(
        Json(JsonObject{{"text", Json(told ? reference.text : std::string())}}));
  }
  if (!references.as_array().empty()) json->Set("references", std::move(references));
  if (!request.speech_fields.is_object()) return;
  Json fields(JsonObject{});
  for (const auto& [name, value] : request.speech_fields.as_object()) {
    if (Takes(taken, name)) fields.Set(name, value);
  }
  json->Set("speech_fields", std::move(fields));
}

}  // namespace

bool GetsReference(const VoiceReference& reference, std::span<const std::string> speech_fields) {
  return reference.sound != nullptr && Takes(speech_fields, reference.kind());
}

std::string RequestJson(const Request& request, std::span<const std::string> speech_fields) {
  Json json(JsonObject{});
  json.Set("id", request.id);
  json.Set("task", TaskName(request.task));
  json.Set("wants_text", request.wants_text);
  json.Set("wants_audio", request.wants_audio);
  Json speech(JsonObject{});
  speech.Set("voice", request.speech.voice);
  speech.Set("format", media::AudioFormatName(request.speech.format));
  speech.Set("sample_rate", static_cast<int64_t>(request.speech.sample_rate));
  speech.Set("speed", request.speech.speed);
  json.Set("speech", std::move(speech));
  json.Set("language", request.language);
  json.Set("instructions", request.instructions);
  json.Set("translate", request.translate);
  json.Set("stage_params", request.stage_params);
  json.Set("stage_sampling", request.stage_sampling);
  if (!request.sampling.is_null()) json.Set("sampling", request.sampling);
  if (!speech_fields.empty()) AddSpeechFields(request, speech_fields, &json);
  if (request.chat != nullptr) {
    json.Set("messages", request.chat->messages);
    if (!request.chat->tools.is_null()) {
      json.Set("tools", request.chat->tools);
      json.Set("tool_choice", ToolChoiceJson(request.chat->tool_choice));
      json.Set("parallel_tool_calls", request.chat->parallel_tool_calls);
    }
    json.Set("sampling", SamplingJson(request.chat->options));
    if (request.chat->options.max_tokens) {
      json.Set("max_tokens", *request.chat->options.max_tokens);
    }
    if (request.chat->options.temperature) {
      json.Set("temperature", static_cast<double>(*request.chat->options.temperature));
    }
  }
  return json.Dump();
}

StatusOr<Request> ReadRequest(std::string_view text) {
  PORTICO_ASSIGN_OR_RETURN(Json json, Json::Parse(text));
  Request request;
  request.id = json.GetString("id");
  const std::string task = json.GetString("task");
  for (const Task known : {Task::kSpeech, Task::kTranscription, Task::kChat}) {
    if (task == TaskName(known)) request.task = known;
  }
  request.wants_text = json.GetBool("wants_text", false);
  request.wants_audio = json.GetBool("wants_audio", false);
  if (const Json* speech = json.Find("speech")) {
    request.speech.voice = speech->GetString("voice");
    request.speech.format =
        media::ParseAudioFormat(speech->GetString("format")).value_or(media::AudioFormat::kWav);
    request.speech.sample_rate = static_cast<int32_t>(speech->GetInt("sample_rate", 0));
    request.speech.speed = speech->GetDouble("speed", 1);
  }
  request.language = json.GetString("language");
  request.instructions = json.GetString("instructions");
  request.translate = json.GetBool("translate", false);
  if (Json* params = json.Find("stage_params")) request.stage_params = std::move(*params);
  if (Json* sampling = json.Find("stage_sampling")) request.stage_sampling = std::move(*sampling);
  if (Json* messages = json.Find("messages")) {
    auto chat = std::make_shared<ChatRequest>();
    chat->messages = std::move(*messages);
    if (const Json* most = json.Find("max_tokens"); most != nullptr && most->is_int()) {
      chat->options.max_tokens = most->as_int();
    }
    request.chat = std::move(chat);
  }
  return request;
}

}  // namespace portico::pipeline
