#include "api/openai/audio/voice/voice_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "api/openai/audio/chat/decode_chat_audio.h"
#include "base/base64.h"

namespace portico::api::openai {
namespace {

// What the fields of a request's voice are read into.
struct VoiceTarget {
  const pipeline::Pipeline& pipeline;
  const MediaRules rules;
  pipeline::Request* request;
  std::vector<WantedSound>* wanted;
};

using SoundFile = std::shared_ptr<const std::string>;

StatusOr<SoundFile> SoundOfBase64(std::string_view field, std::string_view place,
                                  std::string_view text, size_t max_bytes) {
  if (text.size() / 4 > max_bytes / 3 + 1) {
    return InvalidArgument(field, fmt::format("{} has more than {} bytes", place, max_bytes));
  }
  auto bytes = std::make_shared<std::string>();
  if (text.empty() || !FromBase64(text, bytes.get())) {
    return InvalidArgument(field, fmt::format("{} must be base64", place));
  }
  return SoundFile(std::move(bytes));
}

// "data:audio/wav;base64,…"
StatusOr<SoundFile> SoundOfDataUrl(std::string_view field, std::string_view place,
                                   std::string_view url, size_t max_bytes) {
  constexpr size_t kScheme = 5;
  const size_t comma = url.find(',');
  const std::string_view head =
      comma == std::string_view::npos ? "" : url.substr(kScheme, comma - kScheme);
  if (!absl::StartsWithIgnoreCase(absl::string_view(head.data(), head.size()), "audio/") ||
      !head.ends_with(";base64")) {
    return InvalidArgument(
        field,
        fmt::format("{} must be an address of a sound, or a data: URL of audio in base64", place));
  }
  return SoundOfBase64(field, place, url.substr(comma + 1), max_bytes);
}

Status AddSound(std::string_view field, WantedSound sound, std::string text, VoiceTarget* target) {
  if (text.size() > kMaxReferenceText) {
    return InvalidArgument(
        field, fmt::format("{}: its text has more than {} bytes", sound.place, kMaxReferenceText));
  }
  target->request->references.push_back({std::string(field), std::move(text), nullptr});
  target->wanted->push_back(std::move(sound));
  return OkStatus();
}

Status AddSoundOf(std::string_view field, std::string place, std::string_view address,
                  std::string text, VoiceTarget* target) {
  WantedSound sound{std::string(field), std::move(place), std::nullopt, nullptr};
  if (address.starts_with("data:")) {
    PORTICO_ASSIGN_OR_RETURN(sound.file,
                             SoundOfDataUrl(field, sound.place, address, target->rules.max_bytes));
  } else {
    auto url = ReadMediaUrl(target->rules, address);
    if (!url.ok()) {
      return InvalidArgument(field, fmt::format("{} {}", sound.place, MessageOf(url.status())));
    }
    sound.url = *std::move(url);
  }
  return AddSound(field, std::move(sound), std::move(text), target);
}

// {"audio_path": address, "text"}; `ref_audio` and `audio` are other names of the address, `data` is base64.
Status ReadReference(const Json& item, const std::string& place, VoiceTarget* target) {
  constexpr std::string_view kField = "references";
  const auto bad = [&](std::string_view why) {
    return InvalidArgument(kField, fmt::format("{} {}", place, why));
  };
  if (!item.is_object()) return bad("must be an object");
  std::string_view source;
  std::string_view media_type;
  std::string text;
  for (const auto& [name, value] : item.as_object()) {
    if (value.is_null()) continue;
    constexpr std::string_view kSources[] = {"audio_path", "ref_audio", "audio", "data"};
    const bool is_source =
        std::find(std::begin(kSources), std::end(kSources), name) != std::end(kSources);
    if (name == "vq_codes") return bad("has vq_codes, which no stage of this pipeline takes");
    if (!is_source && name != "text" && name != "media_type") {
      return bad(fmt::format("has no field `{}`", name.substr(0, 64)));
    }
    if (!value.is_string()) return bad(fmt::format("needs a text as {}", name));
    if (is_source && !source.empty()) return bad(fmt::format("has both {} and {}", source, name));
    if (is_source) source = name;
    if (name == "text") text = value.as_string();
    if (name == "media_type") media_type = value.as_string();
  }
  if (source.empty()) return bad("needs audio_path, the address of a sound, or data");
  const std::string& sound = item.Find(source)->as_string();
  std::string at = fmt::format("{}.{}", place, source);
  if (source != "data") {
    if (!media_type.empty()) return bad("has a media_type, which is for data");
    return AddSoundOf(kField, std::move(at), sound, std::move(text), target);
  }
  if (!media_type.empty() &&
      !absl::StartsWithIgnoreCase(absl::string_view(media_type.data(), media_type.size()),
                                  "audio/")) {
    return bad("needs a media_type of audio");
  }
  PORTICO_ASSIGN_OR_RETURN(SoundFile file,
                           SoundOfBase64(kField, at, sound, target->rules.max_bytes));
  return AddSound(kField, {std::string(kField), at, std::nullopt, std::move(file)}, std::move(text),
                  target);
}

Status ReadReferences(const Json& list, VoiceTarget* target) {
  if (!list.is_array() || list.as_array().empty() || list.as_array().size() > kMostReferences) {
    return InvalidArgument("references",
                           fmt::format("references must be a list of 1 to {}", kMostReferences));
  }
  for (size_t i = 0; i < list.as_array().size(); ++i) {
    PORTICO_RETURN_IF_ERROR(
        ReadReference(list.as_array()[i], fmt::format("references[{}]", i), target));
  }
  return OkStatus();
}

// "custom_voice" is "CustomVoice".
StatusOr<Json> ReadTaskType(const Json& value) {
  std::string plain;
  for (const char c : value.is_string() ? value.as_string() : std::string()) {
    if (c != '_' && c != '-') plain += absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  for (const std::string_view name : {"Base", "CustomVoice", "VoiceDesign"}) {
    if (absl::EqualsIgnoreCase(plain, absl::string_view(name.data(), name.size()))) {
      return Json(std::string(name));
    }
  }
  return InvalidArgument("task_type", "task_type must be Base, CustomVoice or VoiceDesign");
}

StatusOr<Json> ReadOtherField(std::string_view name, const Json& value) {
  if (name == "task_type") return ReadTaskType(value);
  if (name == "x_vector_only_mode") {
    if (value.is_bool()) return value;
    return InvalidArgument(name, fmt::format("{} must be true or false", name));
  }
  constexpr int64_t kMost = 1 << 20;
  const int64_t least = name == "initial_codec_chunk_frames" ? 0 : 1;
  if (value.is_int() && value.as_int() >= least && value.as_int() <= kMost) return value;
  return InvalidArgument(name,
                         fmt::format("{} must be an integer from {} to {}", name, least, kMost));
}

}  // namespace

Status ReadVoiceFields(const pipeline::Pipeline& pipeline, const Json& given,
                       pipeline::Request* request, std::vector<WantedSound>* wanted) {
  if (!given.is_object()) return OkStatus();
  const bool uploaded = !request->references.empty();
  const auto refuse_uploaded = [&](std::string_view name) {
    return InvalidArgument(
        name, fmt::format("{}: the voice `{}` is an uploaded one, and is imitated", name,
                          request->speech.voice));
  };
  for (const auto& [name, value] : given.as_object()) {
    if (!pipeline.TakesSpeechField(request->task, name)) {
      return InvalidArgument(name, fmt::format("{}: no stage of this pipeline supports it", name));
    }
    if (uploaded && name.starts_with("ref")) return refuse_uploaded(name);
  }
  VoiceTarget target{pipeline, MediaRulesOf(pipeline), request, wanted};
  const Json* text = given.Find("ref_text");
  if (text != nullptr && (!text->is_string() || given.Find("ref_audio") == nullptr)) {
    return InvalidArgument("ref_text", "ref_text must be the text that is said in ref_audio");
  }
  for (const auto& [name, value] : given.as_object()) {
    if (name == "ref_text") continue;
    if (name == "references") {
      PORTICO_RETURN_IF_ERROR(ReadReferences(value, &target));
    } else if (name == "ref_audio") {
      if (!value.is_string()) {
        return InvalidArgument(name, "ref_audio must be the address of a sound");
      }
      PORTICO_RETURN_IF_ERROR(AddSoundOf(name, name, value.as_string(),
                                         text == nullptr ? std::string() : text->as_string(),
                                         &target));
    } else {
      PORTICO_ASSIGN_OR_RETURN(Json read, ReadOtherField(name, value));
      if (uploaded && name == "task_type" && read != Json("Base")) return refuse_uploaded(name);
      if (request->speech_fields.is_null()) request->speech_fields = Json(JsonObject{});
      request->speech_fields.Set(name, std::move(read));
    }
  }
  if (request->references.size() > kMostReferences) {
    return InvalidArgument("references", fmt::format("references and ref_audio must together be at "
                                                     "most {}",
                                                     kMostReferences));
  }
  return OkStatus();
}

}  // namespace portico::api::openai
