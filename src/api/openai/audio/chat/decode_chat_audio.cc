#include "api/openai/audio/chat/decode_chat_audio.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "api/openai/audio/chat/audio_answers.h"
#include "api/openai/audio/chat_stage_fields.h"
#include "api/openai/audio/speech/decode_speech.h"
#include "api/openai/chat/decode_chat.h"
#include "api/reply.h"
#include "base/base64.h"
#include "media/decoder.h"
#include "text/json.h"

namespace portico::api::openai {
namespace {

constexpr size_t kMaxClips = 16;

Status ReadModalities(const Json& value, pipeline::Request* request) {
  const auto bad = [] {
    return InvalidArgument("modalities", "modalities must be a list of \"text\" and \"audio\"");
  };
  if (!value.is_array() || value.as_array().empty()) return bad();
  for (const Json& item : value.as_array()) {
    if (!item.is_string()) return bad();
    if (item.as_string() == "text") {
      request->wants_text = true;
    } else if (item.as_string() == "audio") {
      request->wants_audio = true;
    } else {
      return bad();
    }
  }
  return OkStatus();
}

Status ReadAudio(const Json& value, const pipeline::Pipeline& pipeline,
                 pipeline::Request* request) {
  if (!value.is_object()) return InvalidArgument("audio", "audio must be an object");
  std::string format = "wav";
  for (const auto& [name, member] : value.as_object()) {
    if (name == "voice" || name == "format") {
      if (!member.is_string()) {
        return InvalidArgument("audio", fmt::format("audio.{} must be a text", name));
      }
      if (name == "format") {
        format = member.as_string() == "pcm16" ? "pcm" : member.as_string();
        continue;
      }
      const Status voice = pipeline.SetVoice(member.as_string(), request);
      if (!voice.ok()) return InvalidArgument("audio", std::string(MessageOf(voice)));
      for (pipeline::VoiceReference& reference : request->references) reference.field = "audio";
    } else {
      return InvalidArgument("audio", fmt::format("audio has no field `{}`", name.substr(0, 64)));
    }
  }
  auto known = ReadFormat("audio", format);
  if (!known.ok()) return known.status();
  request->speech.format = *known;
  return OkStatus();
}

using Clip = std::shared_ptr<const std::string>;

StatusOr<Clip> ClipOfBase64(std::string_view field, std::string_view place, std::string_view text) {
  auto bytes = std::make_shared<std::string>();
  if (text.empty() || !FromBase64(text, bytes.get())) {
    return InvalidArgument(field, fmt::format("{} must be base64", place));
  }
  return Clip(std::move(bytes));
}

// A name that clients have for a format, and the files that may bear it.
struct ClipFormat {
  std::string_view name;
  std::string_view container;
  std::string_view other;
};
constexpr ClipFormat kClipFormats[] = {
    {"wav", "WAV", ""},      {"mp3", "MP3", ""},    {"flac", "FLAC", ""}, {"ogg", "Ogg", ""},
    {"opus", "Ogg", "WebM"}, {"aac", "AAC", "M4A"}, {"m4a", "M4A", ""},   {"webm", "WebM", ""}};

// `{"data": base64, "format": "wav"}`
StatusOr<Clip> ReadInputAudio(const Json& part, std::string_view place) {
  const auto bad = [place](std::string_view why) {
    return InvalidArgument("messages", fmt::format("{}: {}", place, why));
  };
  const Json* audio = part.Find("input_audio");
  if (audio == nullptr || !audio->is_object()) {
    return bad("input_audio must be an object with data and format");
  }
  const Json* format = audio->Find("format");
  const auto* known = std::end(kClipFormats);
  if (format != nullptr && format->is_string()) {
    known =
        std::find_if(std::begin(kClipFormats), std::end(kClipFormats),
                     [format](const ClipFormat& one) { return one.name == format->as_string(); });
  }
  if (known == std::end(kClipFormats)) {
    return bad("input_audio.format must be one of wav, mp3, flac, ogg, opus, aac, m4a, webm");
  }
  PORTICO_ASSIGN_OR_RETURN(Clip clip,
                           ClipOfBase64("messages", fmt::format("{}: input_audio.data", place),
                                        audio->GetString("data")));
  // Of what is none of them, the stage that decodes it says so.
  const std::string_view container = media::AudioContainer(*clip);
  if (!container.empty() && container != known->container && container != known->other) {
    return bad(fmt::format("input_audio.format is {} and the data is {}", known->name, container));
  }
  return clip;
}

// "data:audio/wav;base64,…"
StatusOr<Clip> ReadDataUrl(std::string_view field, std::string_view place, std::string_view url) {
  const size_t comma = url.find(',');
  if (comma == std::string_view::npos || !url.substr(0, comma).ends_with(";base64")) {
    return InvalidArgument(field, fmt::format("{} must be a data: URL in base64", place));
  }
  return ClipOfBase64(field, place, url.substr(comma + 1));
}

// `{"audio_url": {"url": "…"}}`, or the URL without the object around it.
std::string UrlOf(const Json& part, std::string_view name) {
  const Json* url = part.Find(name);
  if (url == nullptr) return "";
  return url->is_string() ? url->as_string() : url->GetString("url");
}

// A text part in whose place what is heard will come.
StatusOr<Json> AddClip(std::string_view field, Clip file, AudioChat* chat) {
  pipeline::Request* request = &chat->request;
  if (request->clip_marks.size() == kMaxClips) {
    return InvalidArgument(field, fmt::format("at most {} audio parts are accepted", kMaxClips));
  }
  if (chat->clip_field.empty()) chat->clip_field = field;
  const auto clip = static_cast<int32_t>(request->clip_marks.size());
  std::string mark = fmt::format("clip-{}-{}", clip, NewRequestId());
  request->inputs.emplace_back(pipeline::FilePart{clip, std::move(file)});
  Json part(JsonObject{{"type", Json("text")}, {"text", Json(mark)}});
  request->clip_marks.push_back(std::move(mark));
  return part;
}

// The same with the address of a file, which may have to be fetched.
StatusOr<Json> AddAddress(std::string_view field, const std::string& place, std::string_view url,
                          const MediaRules& rules, AudioChat* chat) {
  if (url.starts_with("data:")) {
    PORTICO_ASSIGN_OR_RETURN(Clip file, ReadDataUrl(field, place, url));
    return AddClip(field, std::move(file), chat);
  }
  auto address = ReadMediaUrl(rules, url);
  if (!address.ok()) {
    return InvalidArgument(field, fmt::format("{} {}", place, MessageOf(address.status())));
  }
  PORTICO_ASSIGN_OR_RETURN(Json part, AddClip(field, nullptr, chat));
  chat->media.push_back({.input = chat->request.inputs.size() - 1,
                         .field = std::string(field),
                         .place = place,
                         .url = *std::move(address)});
  return part;
}

// Puts a mark in the place of each sound of a message's parts.
Status TakeClips(Json* messages, const MediaRules& rules, AudioChat* chat) {
  if (!messages->is_array()) return OkStatus();  // api/openai/chat/decode_chat.h says what is wrong
  for (size_t m = 0; m < messages->as_array().size(); ++m) {
    Json* content = messages->as_array()[m].Find("content");
    if (content == nullptr || !content->is_array()) continue;
    for (size_t p = 0; p < content->as_array().size(); ++p) {
      Json& part = content->as_array()[p];
      const std::string place = fmt::format("messages[{}].content[{}]", m, p);
      const std::string type = part.GetString("type");
      if (type == "input_audio") {
        PORTICO_ASSIGN_OR_RETURN(Clip file, ReadInputAudio(part, place));
        PORTICO_ASSIGN_OR_RETURN(part, AddClip("messages", std::move(file), chat));
      } else if (type == "audio_url") {
        const std::string url = UrlOf(part, "audio_url");
        PORTICO_ASSIGN_OR_RETURN(part,
                                 AddAddress("messages", place + ".audio_url", url, rules, chat));
      } else if (type == "video_url") {
        return InvalidArgument("messages",
                               fmt::format("{}: no stage of this pipeline sees video", place));
      }
    }
  }
  return OkStatus();
}

// `audios`: behind the parts of the last message of the user.
Status TakeAudios(const Json& audios, const MediaRules& rules, Json* messages, AudioChat* chat) {
  if (audios.is_null()) return OkStatus();
  if (!audios.is_array()) return InvalidArgument("audios", "audios must be a list of URLs");
  if (audios.as_array().empty()) return OkStatus();
  Json* last = nullptr;
  for (Json& message : messages->as_array()) {
    if (message.GetString("role") == "user") last = &message;
  }
  if (last == nullptr) return InvalidArgument("audios", "audios needs a message of the user");
  JsonArray parts;
  if (Json* content = last->Find("content"); content != nullptr && content->is_array()) {
    parts = std::move(content->as_array());
  } else if (content != nullptr && content->is_string() && !content->as_string().empty()) {
    parts.push_back(Json(JsonObject{{"type", Json("text")}, {"text", *content}}));
  }
  for (size_t i = 0; i < audios.as_array().size(); ++i) {
    const Json& url = audios.as_array()[i];
    PORTICO_ASSIGN_OR_RETURN(
        Json part, AddAddress("audios", fmt::format("audios[{}]", i),
                              url.is_string() ? url.as_string() : std::string(), rules, chat));
    parts.push_back(std::move(part));
  }
  last->Set("content", Json(std::move(parts)));
  return OkStatus();
}

// sglang-omni's name of the rid. True if it is that now.
StatusOr<bool> TakeRequestId(Json* body) {
  Json request_id = TakeMember("request_id", body);
  if (request_id.is_null()) return false;
  if (!request_id.is_string()) {
    return InvalidArgument("request_id", "request_id must be a string");
  }
  if (body->Find("rid") != nullptr) return false;
  body->Set("rid", std::move(request_id));
  return true;
}

// What no stage here can see.
Status RefuseMedia(Json* body) {
  for (const std::string_view field :
       {"images", "videos", "video_fps", "video_max_frames", "video_min_pixels", "video_max_pixels",
        "video_total_pixels", "use_audio_in_video"}) {
    const Json value = TakeMember(field, body);
    const bool nothing = value.is_null() || (value.is_array() && value.as_array().empty());
    if (nothing) continue;
    return InvalidArgument(field, fmt::format("{}: no stage of this pipeline sees", field));
  }
  return OkStatus();
}

// A list of texts is one text: templates of models without media take no lists.
void JoinParts(Json* messages) {
  if (!messages->is_array()) return;
  for (Json& message : messages->as_array()) {
    Json* content = message.Find("content");
    if (content == nullptr || !content->is_array() || content->as_array().empty()) continue;
    std::string joined;
    bool texts = true;
    for (const Json& part : content->as_array()) {
      const Json* text = part.Find("text");
      texts = texts && part.GetString("type") == "text" && text != nullptr && text->is_string();
      if (!texts) break;
      if (!joined.empty()) joined += '\n';
      joined += text->as_string();
    }
    if (texts) *content = Json(std::move(joined));
  }
}

}  // namespace

bool MayHaveAudio(std::string_view body) {
  constexpr std::string_view kNames[] = {"\"modalities\"", "\"audio\"",     "\"input_audio\"",
                                         "\"audio_url\"",  "\"video_url\"", "\"audios\"",
                                         "\"images\"",     "\"videos\"",    "\"stage_",
                                         "\"talker_",      "\"video_",      "\"request_id\""};
  return std::any_of(std::begin(kNames), std::end(kNames), [body](std::string_view name) {
    return body.find(name) != std::string_view::npos;
  });
}

MediaRules MediaRulesOf(const pipeline::Pipeline& pipeline) {
  MediaRules rules;
  rules.domains = pipeline.config().allowed_media_domains;
  rules.local_folder = pipeline.config().allowed_local_media_path;
  return rules;
}

StatusOr<AudioChat> DecodeAudioChat(const std::string& body, simdjson::dom::parser& parser,
                                    const pipeline::Pipeline& pipeline, bool has_models) {
  AudioChat chat;
  pipeline::Request& request = chat.request;
  request.task = pipeline::Task::kChat;
  auto root = Json::Parse(body);
  // What is no JSON object gets the answer that every chat gets.
  if (!root.ok() || !root->is_object()) {
    chat.text_body = body;
    return chat;
  }
  const Json modalities = TakeMember("modalities", &*root);
  const Json audio = TakeMember("audio", &*root);
  const Json audios = TakeMember("audios", &*root);
  if (!modalities.is_null()) PORTICO_RETURN_IF_ERROR(ReadModalities(modalities, &request));
  if (modalities.is_null()) request.wants_text = true;
  if (!audio.is_null() && !request.wants_audio) {
    return InvalidArgument("audio", "audio needs modalities with \"audio\"");
  }
  PORTICO_RETURN_IF_ERROR(RefuseMedia(&*root));
  PORTICO_RETURN_IF_ERROR(TakeStageFields(pipeline, &*root, &request));
  PORTICO_ASSIGN_OR_RETURN(bool changed, TakeRequestId(&*root));
  Json* messages = root->Find("messages");
  if (messages != nullptr && messages->is_array()) {
    PORTICO_ASSIGN_OR_RETURN(const bool answers,
                             TakeAudioAnswers(pipeline.transcripts(), messages));
    changed = changed || answers;
    const MediaRules rules = MediaRulesOf(pipeline);
    PORTICO_RETURN_IF_ERROR(TakeClips(messages, rules, &chat));
    PORTICO_RETURN_IF_ERROR(TakeAudios(audios, rules, messages, &chat));
  }
  const std::string model = root->GetString("model");
  const bool own = pipeline.thinks() && (model == pipeline.config().name || !has_models);
  const bool for_stages = !request.stage_params.is_null() || !request.stage_sampling.is_null();
  if (!request.wants_audio && request.clip_marks.empty() && !for_stages && !own) {
    chat.text_body = changed ? root->Dump() : body;
    return chat;
  }
  if (messages != nullptr) JoinParts(messages);
  if (!audio.is_null()) PORTICO_RETURN_IF_ERROR(ReadAudio(audio, pipeline, &request));
  if (request.speech.format == media::AudioFormat::kPcm) request.speech.sample_rate = kPcmRate;
  PORTICO_ASSIGN_OR_RETURN(ChatRequest text, DecodeChat(root->Dump(), parser));
  request.id = text.options.rid;
  request.chat = std::make_shared<const ChatRequest>(std::move(text));
  return chat;
}

}  // namespace portico::api::openai
