#include "api/openai/audio/voice/voice_handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "api/exchange_call.h"
#include "api/openai/audio/pipeline_call.h"
#include "api/openai/audio/voice/reference_load.h"
#include "api/query.h"
#include "api/reply.h"
#include "base/clock.h"
#include "net/http/multipart.h"
#include "pipeline/voice_store.h"
#include "text/json_writer.h"
#include "text/utf8.h"

namespace portico::api::openai {
namespace {

using pipeline::UploadedVoice;

constexpr size_t kMaxVoiceFile = size_t{10} << 20;
constexpr size_t kMaxVoiceText = 4096;  // bytes of a field

struct VoiceForm {
  UploadedVoice voice;
  std::shared_ptr<const std::string> file;
};

void AppendVoice(const UploadedVoice& voice, JsonWriter* w) {
  w->BeginObject().Key("name").String(voice.name).Key("consent").String(voice.consent);
  w->Key("created_at").Int(voice.created_at);
  w->Key("file_size").Int(static_cast<int64_t>(voice.file_size));
  w->Key("mime_type").String(voice.mime_type);
  if (!voice.ref_text.empty()) w->Key("ref_text").String(voice.ref_text);
  if (!voice.speaker_description.empty()) {
    w->Key("speaker_description").String(voice.speaker_description);
  }
  w->EndObject();
}

Status ReadVoiceFile(const net::FormPart& part, VoiceForm* form) {
  if (part.body.empty()) return InvalidArgument(part.name, "audio_sample: the audio is empty");
  if (part.body.size() > kMaxVoiceFile) {
    return InvalidArgument(part.name, fmt::format("audio_sample has {} bytes; at most {} are taken",
                                                  part.body.size(), kMaxVoiceFile));
  }
  std::string type = part.content_type.substr(0, part.content_type.find(';'));
  const bool plain = type.size() <= 64 && std::all_of(type.begin(), type.end(), [](char c) {
                       return absl::ascii_isgraph(static_cast<unsigned char>(c));
                     });
  form->voice.mime_type = plain && !type.empty() ? std::move(type) : "application/octet-stream";
  form->voice.file_size = part.body.size();
  form->file = std::make_shared<const std::string>(part.body);
  return OkStatus();
}

Status ReadVoicePart(const net::FormPart& part, VoiceForm* form) {
  if (part.name == "audio_sample") return ReadVoiceFile(part, form);
  std::string* text = part.name == "name"                  ? &form->voice.name
                      : part.name == "consent"             ? &form->voice.consent
                      : part.name == "ref_text"            ? &form->voice.ref_text
                      : part.name == "speaker_description" ? &form->voice.speaker_description
                                                           : nullptr;
  if (text == nullptr) {
    const std::string name = IsValidUtf8(part.name) ? part.name.substr(0, 64) : "";
    return InvalidArgument(name, fmt::format("a voice has no field `{}`", name));
  }
  if (part.body.size() > kMaxVoiceText || !IsValidUtf8(part.body)) {
    return InvalidArgument(
        part.name, fmt::format("{} must be text of at most {} bytes", part.name, kMaxVoiceText));
  }
  *text = part.body;
  return OkStatus();
}

StatusOr<VoiceForm> ReadVoiceForm(const net::HttpRequest& request,
                                  const pipeline::Pipeline& pipeline) {
  PORTICO_ASSIGN_OR_RETURN(const auto parts,
                           net::ParseForm(request.Header("content-type"), request.body));
  VoiceForm form;
  std::set<std::string_view> given;
  for (const net::FormPart& part : parts) {
    PORTICO_RETURN_IF_ERROR(ReadVoicePart(part, &form));
    if (!given.insert(part.name).second) {
      return InvalidArgument(part.name, fmt::format("{} is given twice", part.name));
    }
  }
  const UploadedVoice& voice = form.voice;
  if (form.file == nullptr) return InvalidArgument("audio_sample", "audio_sample is required");
  const absl::string_view consent = absl::StripAsciiWhitespace(voice.consent);
  for (const absl::string_view no : {"", "false", "no", "0"}) {
    if (!absl::EqualsIgnoreCase(consent, no)) continue;
    return InvalidArgument("consent", "consent must say that the speaker agrees");
  }
  if (!voice.ref_text.empty() && !pipeline.TakesSpeechField(pipeline::Task::kSpeech, "ref_text")) {
    return InvalidArgument("ref_text", "ref_text: no stage of this pipeline supports it");
  }
  PORTICO_RETURN_IF_ERROR(pipeline::VoiceStore::CheckName(voice.name));
  const std::vector<std::string> taken = pipeline.Voices();
  if (voice.name == "default" || std::find(taken.begin(), taken.end(), voice.name) != taken.end()) {
    return Error(StatusCode::kAlreadyExists, fmt::format("name: there is a voice `{}`", voice.name),
                 "name");
  }
  return form;
}

// Decodes the sound, and keeps the voice.
class VoiceUpload final : public ExchangeCall {
 public:
  VoiceUpload(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, UploadedVoice voice)
      : ExchangeCall(std::move(exchange), shard), voice_(std::move(voice)) {
    rid = "voice-" + NewRequestId();
  }

  void Start(std::shared_ptr<const std::string> file) {
    load_ = ReferenceLoad::Start(shard_,
                                 {{"audio_sample", "audio_sample", std::nullopt, std::move(file)}},
                                 [this](auto sounds) { OnLoaded(std::move(sounds)); });
  }

  void Abort() override {
    load_.reset();
    exchange_->NoteAbort();
    ReplyError(*exchange_, shard_.api, Error(StatusCode::kCancelled, "the request was aborted"));
    Leave();
  }

 private:
  void OnLoaded(StatusOr<ReferenceLoad::Sounds> sounds) {
    Status status = sounds.status();
    std::string body;
    if (status.ok()) {
      voice_.sound = sounds->front();
      voice_.created_at = UnixSeconds();
      JsonWriter w(&body);
      w.BeginObject().Key("success").Bool(true).Key("voice");
      AppendVoice(voice_, &w);
      w.EndObject();
      status = shard_.api.pipeline->voice_store().Add(std::move(voice_));
    }
    if (status.ok()) {
      ReplyJson(*exchange_, shard_.api, 200, std::move(body));
    } else {
      ReplyError(*exchange_, shard_.api, status);
    }
    Leave();
  }

  UploadedVoice voice_;
  std::unique_ptr<ReferenceLoad> load_;
};

}  // namespace

void HandleVoices(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  const auto pipeline = ThePipeline(shard.api);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  const auto names_only = QueryValue(exchange->request.query, "names_only");
  const auto uploaded = (*pipeline)->voice_store().All();
  std::string body;
  JsonWriter w(&body);
  if (!names_only.ok()) return ReplyError(*exchange, shard.api, names_only.status());
  bool only = false;
  if (*names_only && !absl::SimpleAtob(names_only->value(), &only)) {
    return ReplyError(*exchange, shard.api,
                      InvalidArgument("names_only", "names_only must be true or false"));
  }
  if (only) {
    w.BeginObject().Key("uploaded_voice_names").BeginArray();
    for (const auto& voice : uploaded) w.String(voice->name);
    w.EndArray().EndObject();
    return ReplyJson(*exchange, shard.api, 200, std::move(body));
  }
  w.BeginObject().Key("voices").BeginArray();
  for (const std::string& voice : (*pipeline)->Voices()) w.String(voice);
  w.EndArray().Key("uploaded_voices").BeginArray();
  for (const auto& voice : uploaded) AppendVoice(*voice, &w);
  w.EndArray().EndObject();
  ReplyJson(*exchange, shard.api, 200, std::move(body));
}

void HandleVoiceUpload(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  const auto pipeline = ThePipeline(shard.api);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  if (!(*pipeline)->TakesSpeechField(pipeline::Task::kSpeech, "ref_audio")) {
    return ReplyError(
        *exchange, shard.api,
        InvalidArgument("audio_sample", "no stage of this pipeline can clone a voice"));
  }
  auto form = ReadVoiceForm(exchange->request, **pipeline);
  if (!form.ok()) return ReplyError(*exchange, shard.api, form.status());
  std::string().swap(exchange->request.body);
  auto call = std::make_unique<VoiceUpload>(std::move(exchange), shard, std::move(form->voice));
  VoiceUpload& upload = *call;
  shard.calls.Add(std::move(call));
  upload.Start(std::move(form->file));
}

void HandleVoiceRemoval(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  const auto pipeline = ThePipeline(shard.api);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  const std::string_view name = std::string_view(exchange->request.path).substr(kVoicesPath.size());
  if (!(*pipeline)->voice_store().Remove(name)) {
    return ReplyError(*exchange, shard.api,
                      Error(StatusCode::kNotFound,
                            fmt::format("no voice `{}` was uploaded", name.substr(0, 64)), "name"));
  }
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("success").Bool(true).Key("name").String(name).EndObject();
  ReplyJson(*exchange, shard.api, 200, std::move(body));
}

}  // namespace portico::api::openai
