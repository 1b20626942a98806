#include "api/openai/realtime/session_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_replace.h"

namespace portico::api::openai {
namespace {

using Coding = RealtimeConfig::Coding;
using Eagerness = RealtimeConfig::Eagerness;

Status Bad(std::string_view field, std::string_view expected) {
  return InvalidArgument(field, fmt::format("{} must be {}", field, expected));
}

Status ReadText(const Json& value, std::string_view field, std::string* out) {
  if (!value.is_string()) return Bad(field, "a text");
  *out = value.as_string();
  return OkStatus();
}

Status ReadFlag(const Json& value, std::string_view field, bool* out) {
  if (!value.is_bool()) return Bad(field, "true or false");
  *out = value.as_bool();
  return OkStatus();
}

Status ReadInt(const Json& value, std::string_view field, int64_t min, int64_t max, int32_t* out) {
  if (!value.is_int() || value.as_int() < min || value.as_int() > max) {
    return Bad(field, fmt::format("an integer in {}..{}", min, max));
  }
  *out = static_cast<int32_t>(value.as_int());
  return OkStatus();
}

Status ReadNumber(const Json& value, std::string_view field, double min, double max, double* out) {
  if (!value.is_number() || !(value.as_double() >= min && value.as_double() <= max)) {
    return Bad(field, fmt::format("a number in {}..{}", min, max));
  }
  *out = value.as_double();
  return OkStatus();
}

Status ReadCoding(const Json& value, const std::string& field, Coding* out) {
  const std::string type = value.GetString("type");
  if (type == "audio/pcm") {
    if (value.GetInt("rate", 24000) != 24000) return Bad(field + ".rate", "24000");
    *out = Coding::kPcm;
  } else if (type == "audio/pcmu") {
    *out = Coding::kMuLaw;
  } else if (type == "audio/pcma") {
    *out = Coding::kALaw;
  } else {
    return Bad(field + ".type", "audio/pcm, audio/pcmu or audio/pcma");
  }
  return OkStatus();
}

Status Unknown(const std::string& field) {
  return InvalidArgument(field, fmt::format("{} is not supported", field));
}

constexpr std::pair<std::string_view, Eagerness> kEagerness[] = {{"auto", Eagerness::kAuto},
                                                                 {"low", Eagerness::kLow},
                                                                 {"medium", Eagerness::kMedium},
                                                                 {"high", Eagerness::kHigh}};

Status ReadEagerness(const Json& value, std::string_view field, Eagerness* out) {
  for (const auto& [name, eagerness] : kEagerness) {
    if (value != Json(name)) continue;
    *out = eagerness;
    return OkStatus();
  }
  return Bad(field, "low, medium, high or auto");
}

// Those of a kind of turns whose fields the session has not been told yet.
void SetDefaultTurns(bool semantic, RealtimeConfig* config) {
  const RealtimeConfig defaults;
  config->eagerness = semantic ? std::optional(Eagerness::kAuto) : std::nullopt;
  config->threshold = defaults.threshold;
  config->prefix_padding_ms = defaults.prefix_padding_ms;
  config->silence_duration_ms = defaults.silence_duration_ms;
  config->idle_timeout_ms = defaults.idle_timeout_ms;
}

Status ReadTurns(const Json& value, const pipeline::Pipeline& pipeline, RealtimeConfig* config) {
  const std::string at = "session.audio.input.turn_detection";
  if (value.is_null()) {
    config->vad = false;
    return OkStatus();
  }
  const std::string type = value.GetString("type");
  if (type != "server_vad" && type != "semantic_vad") {
    return Bad(at + ".type", "server_vad or semantic_vad");
  }
  config->vad = true;
  const bool semantic = type == "semantic_vad";
  if (semantic && !pipeline.Serves(pipeline::Task::kTranscription)) {
    return Bad(at + ".type", "server_vad: this pipeline recognizes no speech");
  }
  if (semantic != config->eagerness.has_value()) SetDefaultTurns(semantic, config);
  for (const auto& [name, member] : value.as_object()) {
    const std::string field = at + "." + name;
    const bool of_both =
        name == "type" || name == "create_response" || name == "interrupt_response";
    if (!of_both && semantic != (name == "eagerness")) {
      if (!member.is_null()) return Unknown(field);
      continue;
    }
    Status status = OkStatus();
    if (name == "threshold") {
      status = ReadNumber(member, field, 0, 1, &config->threshold);
    } else if (name == "prefix_padding_ms") {
      status = ReadInt(member, field, 0, 5000, &config->prefix_padding_ms);
    } else if (name == "silence_duration_ms") {
      status = ReadInt(member, field, 50, 10000, &config->silence_duration_ms);
    } else if (name == "create_response") {
      status = ReadFlag(member, field, &config->create_response);
    } else if (name == "interrupt_response") {
      status = ReadFlag(member, field, &config->interrupt_response);
    } else if (name == "eagerness") {
      status = ReadEagerness(member, field, &*config->eagerness);
    } else if (name == "idle_timeout_ms" && !config->transcription) {
      config->idle_timeout_ms = 0;
      if (!member.is_null()) status = ReadInt(member, field, 5000, 30000, &config->idle_timeout_ms);
    } else if (name != "type" && !member.is_null()) {
      status = Unknown(field);
    }
    PORTICO_RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

// `language` and `prompt` are refused where the pipeline's transcriptions refuse them.
Status ReadTranscription(const Json& value, const pipeline::Pipeline& pipeline,
                         RealtimeConfig* config) {
  const std::string at = "session.audio.input.transcription";
  config->transcribes = !value.is_null();
  config->heard_model.clear();
  config->heard_language.clear();
  config->heard_prompt.clear();
  if (value.is_null()) return OkStatus();
  if (!value.is_object()) return Bad(at, "an object or null");
  for (const auto& [name, member] : value.as_object()) {
    if (member.is_null()) continue;
    const std::string field = at + "." + name;
    Status status = OkStatus();
    if (name == "model") {
      status = ReadText(member, field, &config->heard_model);
    } else if (name == "language") {
      status = ReadText(member, field, &config->heard_language);
    } else if (name == "prompt") {
      status = ReadText(member, field, &config->heard_prompt);
    } else {
      status = Unknown(field);
    }
    PORTICO_RETURN_IF_ERROR(status);
  }
  const Status hears = pipeline.Check(config->HearingRequest());
  if (!absl::IsInvalidArgument(hears)) return OkStatus();
  return InvalidArgument(at + "." + std::string(FieldOf(hears)), std::string(MessageOf(hears)));
}

Status ReadInput(const Json& value, const pipeline::Pipeline& pipeline, RealtimeConfig* config) {
  const std::string at = "session.audio.input";
  if (!value.is_object()) return Bad(at, "an object");
  for (const auto& [name, member] : value.as_object()) {
    const std::string field = at + "." + name;
    Status status = OkStatus();
    if (name == "format") {
      status = ReadCoding(member, field, &config->input);
    } else if (name == "transcription") {
      status = ReadTranscription(member, pipeline, config);
    } else if (name == "turn_detection") {
      status = ReadTurns(member, pipeline, config);
    } else if (!member.is_null()) {
      status = Unknown(field);
    }
    PORTICO_RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

Status ReadOutput(const Json& value, const pipeline::Pipeline& pipeline, RealtimeConfig* config) {
  const std::string at = "session.audio.output";
  if (!value.is_object()) return Bad(at, "an object");
  for (const auto& [name, member] : value.as_object()) {
    const std::string field = at + "." + name;
    Status status = OkStatus();
    if (name == "format") {
      status = ReadCoding(member, field, &config->output);
    } else if (name == "voice") {
      status = ReadText(member, field, &config->voice);
      if (status.ok() && !pipeline.ResolveVoice(config->voice).ok()) {
        status = InvalidArgument(
            field, std::string(MessageOf(pipeline.ResolveVoice(config->voice).status())));
      }
    } else if (name == "speed") {
      status = ReadNumber(member, field, 0.25, 4, &config->speed);
    } else if (!member.is_null()) {
      status = Unknown(field);
    }
    PORTICO_RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

Status ReadModalities(const Json& value, RealtimeConfig* config) {
  const bool one = value.is_array() && value.as_array().size() == 1;
  if (one && value.as_array()[0] == Json("audio")) {
    config->speaks = true;
  } else if (one && value.as_array()[0] == Json("text")) {
    config->speaks = false;
  } else {
    return Bad("session.output_modalities", "[\"audio\"] or [\"text\"]");
  }
  return OkStatus();
}

// Values that ask for nothing.
bool IsNothing(const Json& value) {
  return value.is_null() || (value.is_array() && value.as_array().empty()) ||
         value == Json("auto") || value == Json("none") || value == Json("disabled");
}

Status ReadTool(const Json& tool, const std::string& at) {
  if (tool.GetString("type") != "function") return Bad(at + ".type", "function");
  if (tool.GetString("name").empty()) return Bad(at + ".name", "a text");
  for (const auto& [name, member] : tool.as_object()) {
    if (name == "type" || name == "name" || member.is_null()) continue;
    if (name == "description") {
      if (!member.is_string()) return Bad(at + ".description", "a text");
    } else if (name == "parameters") {
      if (!member.is_object()) return Bad(at + ".parameters", "a JSON schema");
    } else if (name == "strict") {
      if (!member.is_bool()) return Bad(at + ".strict", "true or false");
    } else {
      return Unknown(at + "." + name);
    }
  }
  return OkStatus();
}

// Functions, as the Responses API writes them: flat.
Status ReadTools(const Json& value, const pipeline::Pipeline& pipeline, RealtimeConfig* config) {
  constexpr size_t kMost = 128;
  const std::string field = "session.tools";
  if (value.is_null() || (value.is_array() && value.as_array().empty())) {
    config->tools = Json();
    return OkStatus();
  }
  if (!value.is_array() || value.as_array().size() > kMost) {
    return Bad(field, fmt::format("a list of at most {} functions", kMost));
  }
  if (!pipeline.calls_tools()) {
    return InvalidArgument(field, fmt::format("{}: no stage of this pipeline calls tools", field));
  }
  for (size_t i = 0; i < value.as_array().size(); ++i) {
    PORTICO_RETURN_IF_ERROR(ReadTool(value.as_array()[i], fmt::format("{}[{}]", field, i)));
  }
  config->tools = value;
  return OkStatus();
}

Status ReadToolChoice(const Json& value, RealtimeConfig* config) {
  const bool mode = value == Json("auto") || value == Json("none") || value == Json("required");
  const bool one = value.GetString("type") == "function" && !value.GetString("name").empty();
  if (!mode && !one) {
    return Bad("session.tool_choice", "auto, none, required, or a function by name");
  }
  config->tool_choice = value;
  return OkStatus();
}

Status ReadMember(const std::string& name, const Json& member, const pipeline::Pipeline& pipeline,
                  RealtimeConfig* config) {
  const std::string field = "session." + name;
  if (name == "instructions") return ReadText(member, field, &config->instructions);
  if (name == "output_modalities") return ReadModalities(member, config);
  if (name == "tools") return ReadTools(member, pipeline, config);
  if (name == "tool_choice" && !member.is_null()) return ReadToolChoice(member, config);
  if (name == "temperature" && config->beta) {
    double temperature = 0;
    PORTICO_RETURN_IF_ERROR(ReadNumber(member, field, 0, 2, &temperature));
    config->temperature = temperature;
    return OkStatus();
  }
  if (name == "max_output_tokens") {
    if (member == Json("inf")) {
      config->max_output_tokens.reset();
      return OkStatus();
    }
    int32_t tokens = 0;
    PORTICO_RETURN_IF_ERROR(ReadInt(member, field, 1, 4096, &tokens));
    config->max_output_tokens = tokens;
    return OkStatus();
  }
  if (name == "audio") {
    if (!member.is_object()) return Bad(field, "an object");
    if (const Json* input = member.Find("input")) {
      PORTICO_RETURN_IF_ERROR(ReadInput(*input, pipeline, config));
    }
    const Json* output = member.Find("output");
    return output == nullptr ? OkStatus() : ReadOutput(*output, pipeline, config);
  }
  if (name == "type") {
    if (member == Json(config->transcription ? "transcription" : "realtime")) return OkStatus();
    return Bad(field, config->transcription ? "transcription" : "realtime");
  }
  // What the server has told comes back from some clients.
  if (name == "id" || name == "object" || name == "expires_at") return OkStatus();
  if (name == "model") {
    if (member == Json(config->model)) return OkStatus();
    return Bad(field,
               fmt::format("\"{}\": the model of a session cannot be changed", config->model));
  }
  return IsNothing(member) ? OkStatus() : Unknown(field);
}

Json Format(Coding coding) {
  if (coding == Coding::kMuLaw) return Json(JsonObject{{"type", "audio/pcmu"}});
  if (coding == Coding::kALaw) return Json(JsonObject{{"type", "audio/pcma"}});
  return Json(JsonObject{{"type", "audio/pcm"}, {"rate", 24000}});
}

}  // namespace

Status RealtimeConfig::Update(const Json& session, const pipeline::Pipeline& pipeline,
                              std::string_view name) {
  if (!session.is_object()) return Bad(name, "an object");
  RealtimeConfig changed = *this;
  for (const auto& [member, value] : session.as_object()) {
    Status status = ReadMember(member, value, pipeline, &changed);
    if (status.ok() || name == "session") {
      PORTICO_RETURN_IF_ERROR(status);
      continue;
    }
    const std::map<std::string, std::string> renamed{{"session.", std::string(name) + "."}};
    return Error(status.code(), absl::StrReplaceAll(std::string(MessageOf(status)), renamed),
                 absl::StrReplaceAll(std::string(FieldOf(status)), renamed), ReasonOf(status));
  }
  *this = std::move(changed);
  return OkStatus();
}

// As OpenAI's.
int64_t RealtimeConfig::longest_pause_ms() const {
  switch (eagerness.value_or(Eagerness::kAuto)) {
    case Eagerness::kLow:
      return 8000;
    case Eagerness::kHigh:
      return 2000;
    default:
      return 4000;
  }
}

pipeline::Request RealtimeConfig::HearingRequest() const {
  pipeline::Request request;
  request.task = pipeline::Task::kTranscription;
  request.language = heard_language;
  request.instructions = heard_prompt;
  return request;
}

Json RealtimeConfig::ChatTools() const {
  JsonArray chat;
  for (const Json& tool : tools.as_array()) {
    Json function(JsonObject{{"name", tool.GetString("name")}});
    for (const std::string_view key : {"description", "parameters", "strict"}) {
      const Json* value = tool.Find(key);
      if (value != nullptr && !value->is_null()) function.Set(key, *value);
    }
    chat.push_back(Json(JsonObject{{"type", "function"}, {"function", std::move(function)}}));
  }
  return Json(std::move(chat));
}

Json RealtimeConfig::ChatToolChoice() const {
  if (!tool_choice.is_object()) return tool_choice;
  return Json(JsonObject{{"type", "function"},
                         {"function", Json(JsonObject{{"name", tool_choice.GetString("name")}})}});
}

Json RealtimeConfig::ToJson() const {
  Json turns;
  if (semantic_vad()) {
    const auto* const name =
        std::find_if(std::begin(kEagerness), std::end(kEagerness),
                     [this](const auto& one) { return one.second == *eagerness; });
    turns = Json(JsonObject{{"type", "semantic_vad"},
                            {"eagerness", Json(name->first)},
                            {"create_response", create_response},
                            {"interrupt_response", interrupt_response}});
  } else if (vad) {
    turns =
        Json(JsonObject{{"type", "server_vad"},
                        {"threshold", threshold},
                        {"prefix_padding_ms", prefix_padding_ms},
                        {"silence_duration_ms", silence_duration_ms},
                        {"idle_timeout_ms", idle_timeout_ms > 0 ? Json(idle_timeout_ms) : Json()},
                        {"create_response", create_response},
                        {"interrupt_response", interrupt_response}});
  }
  Json heard;
  if (transcribes) {
    heard = Json(JsonObject{});
    if (!heard_model.empty()) heard.Set("model", Json(heard_model));
    if (!heard_language.empty()) heard.Set("language", Json(heard_language));
    if (!heard_prompt.empty()) heard.Set("prompt", Json(heard_prompt));
  }
  Json hears(JsonObject{{"format", Format(this->input)},
                        {"transcription", std::move(heard)},
                        {"noise_reduction", Json()},
                        {"turn_detection", std::move(turns)}});
  Json sound(JsonObject{{"input", std::move(hears)}});
  Json out(JsonObject{{"type", transcription ? "transcription" : "realtime"},
                      {"object", "realtime.session"},
                      {"id", id}});
  if (!transcription) {
    out.Set("model", Json(model));
    out.Set("output_modalities", Json(JsonArray{Json(speaks ? "audio" : "text")}));
    out.Set("instructions", Json(instructions));
    out.Set("tools", tools.is_null() ? Json(JsonArray{}) : tools);
    out.Set("tool_choice", tool_choice);
    out.Set("max_output_tokens",
            max_output_tokens ? Json(*max_output_tokens) : Json(std::string_view("inf")));
    sound.Set("output",
              Json(JsonObject{{"format", Format(output)}, {"voice", voice}, {"speed", speed}}));
  }
  out.Set("audio", std::move(sound));
  return out;
}

}  // namespace portico::api::openai
