#include "api/openai/audio/transcription/transcription_handler.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "api/common/error_body.h"
#include "api/openai/audio/chat_stage_fields.h"
#include "api/openai/audio/pipeline_call.h"
#include "api/openai/audio/speech/speech_handler.h"
#include "api/openai/audio/transcription/transcript.h"
#include "api/reply.h"
#include "net/http/multipart.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

using pipeline::ClipEndPart;
using pipeline::HeardPart;
using pipeline::Part;
using pipeline::TextPart;

constexpr std::string_view kTranslate = "translate";

struct TranscriptionForm {
  std::shared_ptr<std::string> file;
  std::string model;
  TranscriptFormat format = TranscriptFormat::kJson;
  bool stream = false;
  bool segments = true;
  bool words = false;
  std::string language;
  std::string prompt;
  Json sampling;  // those of CheckSamplingNumber(), or null
  Json stage_params;
};

StatusOr<TranscriptFormat> ReadTranscriptFormat(std::string_view name) {
  if (name == "json") return TranscriptFormat::kJson;
  if (name == "text") return TranscriptFormat::kText;
  if (name == "verbose_json") return TranscriptFormat::kVerboseJson;
  if (name == "srt") return TranscriptFormat::kSrt;
  if (name == "vtt") return TranscriptFormat::kVtt;
  return InvalidArgument("response_format",
                         fmt::format("response_format must be json, text, verbose_json, srt or "
                                     "vtt, got \"{}\"",
                                     name.substr(0, 64)));
}

Status ReadGranularity(std::string_view value, TranscriptionForm* form, bool* asked) {
  if (!std::exchange(*asked, true)) form->segments = form->words = false;
  if (value == "word") {
    form->words = true;
  } else if (value == "segment") {
    form->segments = true;
  } else {
    return InvalidArgument("timestamp_granularities",
                           "timestamp_granularities must be word or segment");
  }
  return OkStatus();
}

Status ReadTranscriptionSampling(const std::string& name, const std::string& value,
                                 TranscriptionForm* form) {
  if (value.empty() && name != "temperature") return OkStatus();
  auto number = Json::Parse(value);
  if (double plain = 0; !number.ok()) {  // a form may have what is no JSON: .5, 1., +0.5
    number = absl::SimpleAtod(value, &plain) && std::isfinite(plain) ? Json(plain) : Json(value);
  }
  if (name == "temperature" && !(number->is_number() && number->as_double() <= 1)) {
    return InvalidArgument(name, "temperature must be a number in 0..1");
  }
  PORTICO_RETURN_IF_ERROR(CheckSamplingNumber(name, name, *number));
  if (form->sampling.is_null()) form->sampling = Json(JsonObject{});
  form->sampling.Set(name, *std::move(number));
  return OkStatus();
}

Status ReadField(const net::FormPart& part, TranscriptionForm* form, bool* asked) {
  const std::string value(part.body);
  if (part.name == "file") {
    if (form->file != nullptr) return InvalidArgument("file", "file: only one is accepted");
    if (part.body.empty()) return InvalidArgument("file", "file: the audio is empty");
    form->file = std::make_shared<std::string>(value);
  } else if (part.name == "model") {
    form->model = value;
  } else if (part.name == "response_format") {
    PORTICO_ASSIGN_OR_RETURN(form->format, ReadTranscriptFormat(value));
  } else if (part.name == "stream") {
    if (!absl::SimpleAtob(value, &form->stream)) {
      return InvalidArgument("stream", "stream must be true or false");
    }
  } else if (part.name == "language") {
    form->language = value;
  } else if (part.name.starts_with("timestamp_granularities")) {
    return ReadGranularity(value, form, asked);
  } else if (part.name == "temperature" || part.name == "repetition_penalty" ||
             part.name == "max_new_tokens") {
    return ReadTranscriptionSampling(part.name, value, form);
  } else if (part.name == "stage_params") {
    auto params = Json::Parse(value);
    if (!params.ok() || !params->is_object()) {
      return InvalidArgument("stage_params", "stage_params must be a JSON object");
    }
    form->stage_params = *std::move(params);
  } else if (part.name == "prompt") {
    form->prompt = value;
  } else if (part.name == "chunking_strategy" || part.name.starts_with("chunking_strategy[") ||
             part.name.starts_with("known_speaker_")) {
    if (value.empty() || value == "auto") return OkStatus();
    return InvalidArgument(part.name,
                           fmt::format("{}: no stage of this pipeline supports it", part.name));
  } else if (part.name.starts_with("include")) {
    return InvalidArgument("include", "include: this pipeline has no log-probabilities");
  }
  return OkStatus();
}

StatusOr<TranscriptionForm> ReadForm(const net::HttpRequest& request) {
  PORTICO_ASSIGN_OR_RETURN(const auto parts,
                           net::ParseForm(request.Header("content-type"), request.body));
  TranscriptionForm form;
  bool asked = false;
  for (const net::FormPart& part : parts) {
    PORTICO_RETURN_IF_ERROR(ReadField(part, &form, &asked));
  }
  if (form.file == nullptr) return InvalidArgument("file", "file is required");
  if (form.stream && form.format != TranscriptFormat::kJson &&
      form.format != TranscriptFormat::kText) {
    return InvalidArgument("stream", "stream works with response_format json or text");
  }
  if (asked && form.words && form.format != TranscriptFormat::kVerboseJson) {
    return InvalidArgument("timestamp_granularities",
                           "timestamp_granularities needs response_format verbose_json");
  }
  return form;
}

class WholeTranscript final : public PipelineCall {
 public:
  WholeTranscript(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
                  const TranscriptionForm& form, std::string_view task)
      : PipelineCall(std::move(exchange), shard),
        format_(form.format),
        segments_(form.segments),
        words_(form.words),
        task_(task),
        language_(task == kTranslate ? std::string() : form.language) {}

 protected:
  void OnPart(Part part) override {
    if (auto* heard = std::get_if<HeardPart>(&part)) {
      transcript_.segments.push_back(std::move(*heard));
    } else if (const auto* text = std::get_if<TextPart>(&part)) {
      transcript_.text += text->text;
    } else if (const auto* end = std::get_if<ClipEndPart>(&part)) {
      transcript_.seconds = end->seconds;
    }
  }
  void OnDone(const Status& reported) override {
    Status status = reported;
    const bool timed = format_ == TranscriptFormat::kSrt || format_ == TranscriptFormat::kVtt;
    if (status.ok() && timed && transcript_.segments.empty() && !transcript_.text.empty()) {
      status = InvalidArgument("response_format",
                               "response_format: this pipeline does not report the times of words");
    }
    if (status.ok() && words_ && !transcript_.Text().empty() && !transcript_.HasWords()) {
      status = InvalidArgument(
          "timestamp_granularities",
          "timestamp_granularities: this pipeline does not report the times of words");
    }
    if (!status.ok()) return ReplyError(*exchange_, shard_.api, status);
    net::HttpResponse head = Head(*exchange_, shard_.api, 200, TranscriptMediaType(format_));
    head.body = TranscriptBody(transcript_, {format_, task_, language_, segments_, words_});
    exchange_->Respond(std::move(head));
  }

 private:
  const TranscriptFormat format_;
  const bool segments_;
  const bool words_;
  const std::string_view task_;
  const std::string language_;
  Transcript transcript_;
};

class StreamedTranscript final : public PipelineCall {
 public:
  using PipelineCall::PipelineCall;

 protected:
  void OnPart(Part part) override {
    if (auto* heard = std::get_if<HeardPart>(&part)) {
      Begin();
      const std::string delta = (transcript_.segments.empty() ? "" : " ") + heard->text;
      transcript_.segments.push_back(std::move(*heard));
      SendDelta(delta);
    } else if (const auto* text = std::get_if<TextPart>(&part)) {
      Begin();
      transcript_.text += text->text;
      SendDelta(text->text);
    } else if (const auto* end = std::get_if<ClipEndPart>(&part)) {
      transcript_.seconds = end->seconds;
    }
  }
  void OnDone(const Status& status) override {
    if (!status.ok() && !started_) return ReplyError(*exchange_, shard_.api, status);
    Begin();
    std::string event = "data: ";
    JsonWriter w(&event);
    if (status.ok()) {
      w.BeginObject().Key("type").String("transcript.text.done");
      w.Key("text").String(transcript_.Text());
      w.Key("usage").Raw(DurationUsage(transcript_.seconds)).EndObject();
    } else {
      event += "{\"type\":\"error\"," + ErrorBody(status).substr(1);
    }
    exchange_->Write(event + "\n\ndata: [DONE]\n\n");
    exchange_->End();
  }

 private:
  void SendDelta(std::string_view delta) {
    std::string event = "data: ";
    JsonWriter w(&event);
    w.BeginObject().Key("type").String("transcript.text.delta");
    w.Key("delta").String(delta).EndObject();
    exchange_->Write(event + "\n\n");
  }
  void Begin() {
    if (!std::exchange(started_, true)) StartEvents();
  }

  Transcript transcript_;
  bool started_ = false;
};

void Answer(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, bool translate) {
  const auto pipeline = PipelineFor(shard.api, pipeline::Task::kTranscription);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  if (translate && !(*pipeline)->translates()) {
    return ReplyError(*exchange, shard.api,
                      InvalidArgument("model",
                                      "no stage of this pipeline translates; "
                                      "/v1/audio/transcriptions returns the text in the "
                                      "language of the audio"));
  }
  auto form = ReadForm(exchange->request);
  if (form.ok()) {
    if (Status model = CheckSpeechModel(shard.api, form->model); !model.ok()) form = model;
  }
  if (!form.ok()) return ReplyError(*exchange, shard.api, form.status());
  std::string().swap(exchange->request.body);
  pipeline::Request request;
  request.task = pipeline::Task::kTranscription;
  request.id = RequestIdOf(exchange->request);
  request.wants_text = true;
  request.translate = translate;
  request.language = form->language;
  request.instructions = form->prompt;
  request.sampling = form->sampling;
  request.stage_params = form->stage_params;
  request.inputs.emplace_back(pipeline::FilePart{0, form->file});
  std::unique_ptr<PipelineCall> call;
  if (form->stream) {
    call = std::make_unique<StreamedTranscript>(std::move(exchange), shard);
  } else {
    call = std::make_unique<WholeTranscript>(std::move(exchange), shard, *form,
                                             translate ? kTranslate : "transcribe");
  }
  LaunchPipeline(std::move(call), std::move(request), shard);
}

}  // namespace

void HandleTranscription(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  Answer(std::move(exchange), shard, /*translate=*/false);
}

void HandleTranslation(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  Answer(std::move(exchange), shard, /*translate=*/true);
}

}  // namespace portico::api::openai
