#include "api/openai/audio/speech/speech_handler.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "api/common/error_body.h"
#include "api/exchange_call.h"
#include "api/openai/audio/pipeline_call.h"
#include "api/openai/audio/speech/decode_speech.h"
#include "api/openai/audio/voice/reference_load.h"
#include "api/reply.h"
#include "base/base64.h"
#include "pipeline/coordinator/outcomes.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

using pipeline::EncodedPart;
using pipeline::Part;

constexpr std::string_view kSpeechId = "speech-";

// What both forms of an answer have in common.
class SpeechCall : public PipelineCall {
 public:
  SpeechCall(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
             const pipeline::SpeechOptions& options, const std::string& id)
      : PipelineCall(std::move(exchange), shard),
        options_(options),
        id_(std::string(kSpeechId) + id) {}

 protected:
  // Keeps how it ended, for those who ask for it by its id.
  Status Ended(Status status) {
    if (status.ok() && !started_) {
      status = Error(StatusCode::kInternal, "the pipeline made no sound");
    }
    pipeline::Outcome outcome;
    outcome.finish_reason = !status.ok() ? "error" : finish_ ? finish_->reason : "stop";
    if (!status.ok()) outcome.error = std::string(MessageOf(status));
    if (finish_) {
      outcome.has_usage = true;
      outcome.prompt_tokens = finish_->prompt_tokens;
      outcome.completion_tokens = finish_->completion_tokens;
    }
    shard_.api.pipeline->outcomes().Add(id_, std::move(outcome));
    return status;
  }
  std::string Usage() const {
    return finish_ ? SpeechUsage(finish_->prompt_tokens, finish_->completion_tokens) : "null";
  }
  // The head of a stream.
  net::HttpResponse StreamHead(std::string_view media_type, int32_t rate) {
    net::HttpResponse head = Head(*exchange_, shard_.api, 200, media_type);
    for (auto& [name, value] : head.headers) {
      if (name == "x-request-id" && value != exchange_->request.Header(name)) value = id_;
    }
    head.headers.emplace_back("x-sample-rate", fmt::format("{}", rate));
    head.headers.emplace_back("x-channels", "1");
    if (options_.format == media::AudioFormat::kPcm) head.headers.emplace_back("x-bit-depth", "16");
    return head;
  }

  const pipeline::SpeechOptions options_;
  const std::string id_;
  std::optional<pipeline::FinishPart> finish_;
  bool started_ = false;
};

// The file itself, as it is made. The head waits for the first sound, and what is there with it, so that
// what fails before is a proper error.
class BytesCall final : public SpeechCall {
 public:
  using SpeechCall::SpeechCall;

 protected:
  void OnPart(Part part) override {
    if (const auto* finish = std::get_if<pipeline::FinishPart>(&part)) finish_ = *finish;
    const auto* encoded = std::get_if<EncodedPart>(&part);
    if (encoded == nullptr) return;
    if (!std::exchange(started_, true)) rate_ = encoded->sample_rate;
    if (begun_) return exchange_->Write(encoded->bytes);
    held_ += encoded->bytes;
    if (held_.size() >= kMostHeld) Begin();
  }

  void OnPause() override { Begin(); }

  void OnDone(const Status& reported) override {
    const Status status = Ended(reported);
    if (status.ok()) {
      Begin();
      return exchange_->End();
    }
    if (!begun_) return ReplyError(*exchange_, shard_.api, status);
    CutWhenSent();  // the file must not look whole
  }

 private:
  static constexpr size_t kMostHeld = 32 << 10;

  void Begin() {
    if (begun_ || !started_) return;
    begun_ = true;
    StartBody(rate_);
    exchange_->Write(std::exchange(held_, {}));
  }
  void StartBody(int32_t rate) {
    const std::string name(media::AudioFormatName(options_.format));
    net::HttpResponse head = StreamHead(media::MediaType(options_.format), rate);
    head.headers.emplace_back("content-disposition",
                              fmt::format("attachment; filename=\"speech.{}\"", name));
    head.headers.emplace_back("x-sglang-omni-speech-id", id_);
    exchange_->StartStream(std::move(head));
  }

  std::string held_;
  int32_t rate_ = 0;
  bool begun_ = false;
};

// Server-sent events: OpenAI's speech.audio.delta and .done, or the chunks of sglang-omni's design.
class EventsCall final : public SpeechCall {
 public:
  EventsCall(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
             const pipeline::SpeechOptions& options, bool chunks, const std::string& id)
      : SpeechCall(std::move(exchange), shard, options, id), chunks_(chunks) {}

 protected:
  void OnPart(Part part) override {
    if (const auto* finish = std::get_if<pipeline::FinishPart>(&part)) finish_ = *finish;
    const auto* encoded = std::get_if<EncodedPart>(&part);
    if (encoded == nullptr) return;
    if (!std::exchange(started_, true)) {
      net::HttpResponse head = StreamHead("text/event-stream", encoded->sample_rate);
      head.headers.emplace_back("cache-control", "no-cache");
      exchange_->StartStream(std::move(head));
    }
    std::string event = "data: ";
    JsonWriter w(&event);
    if (chunks_) {
      w.BeginObject().Key("id").String(id_).Key("object").String("audio.speech.chunk");
      w.Key("index").Int(index_++).Key("audio").BeginObject();
      w.Key("data").String(ToBase64(encoded->bytes));
      w.Key("format").String(media::AudioFormatName(options_.format));
      w.Key("mime_type").String(media::MediaType(options_.format));
      w.Key("sample_rate").Int(encoded->sample_rate).EndObject();
      w.Key("finish_reason").Null().EndObject();
    } else {
      w.BeginObject().Key("type").String("speech.audio.delta");
      w.Key("audio").String(ToBase64(encoded->bytes)).EndObject();
    }
    exchange_->Write(event + "\n\n");
  }

  void OnDone(const Status& reported) override {
    const Status status = Ended(reported);
    if (!started_) return ReplyError(*exchange_, shard_.api, status);
    std::string event = "data: ";
    JsonWriter w(&event);
    if (!status.ok()) {
      const std::string error = ErrorBody(status);  // {"error":{…}}
      if (chunks_) {
        event += error;
      } else {
        event += "{\"type\":\"error\"," + error.substr(1);
      }
    } else if (chunks_) {
      w.BeginObject().Key("id").String(id_).Key("object").String("audio.speech.chunk");
      w.Key("index").Int(index_).Key("audio").Null();
      w.Key("finish_reason").String(Reason()).Key("usage").Raw(Usage()).EndObject();
    } else {
      w.BeginObject().Key("type").String("speech.audio.done").Key("usage").Raw(Usage());
      w.Key("finish_reason").String(Reason()).EndObject();
    }
    event += "\n\n";
    if (chunks_) event += "data: [DONE]\n\n";
    exchange_->Write(event);
    exchange_->End();
  }

 private:
  std::string Reason() const { return finish_ ? finish_->reason : "stop"; }

  const bool chunks_;
  int64_t index_ = 0;
};

void Speak(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, SpeechRequest speech) {
  pipeline::Request& request = speech.request;
  std::unique_ptr<PipelineCall> call;
  if (speech.events || speech.chunks) {
    call = std::make_unique<EventsCall>(std::move(exchange), shard, request.speech, speech.chunks,
                                        request.id);
  } else {
    call = std::make_unique<BytesCall>(std::move(exchange), shard, request.speech, request.id);
  }
  LaunchPipeline(std::move(call), std::move(request), shard);
}

// Waits for the sounds of the voices to imitate.
class LoadingSpeech final : public ExchangeCall {
 public:
  LoadingSpeech(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, SpeechRequest speech)
      : ExchangeCall(std::move(exchange), shard), speech_(std::move(speech)) {
    rid = speech_.request.id;
  }

  void Load() {
    load_ = ReferenceLoad::Start(shard_, std::move(speech_.sounds),
                                 [this](auto sounds) { OnLoaded(std::move(sounds)); });
  }

  void Abort() override {
    load_.reset();
    exchange_->NoteAbort();
    Refuse(Error(StatusCode::kCancelled, "the request was aborted"));
  }

 private:
  void OnLoaded(StatusOr<ReferenceLoad::Sounds> sounds) {
    if (!sounds.ok()) return Refuse(sounds.status());
    GiveSounds(*sounds, &speech_.request);
    std::unique_ptr<net::Exchange> exchange = TakeExchange();
    Leave();
    Speak(std::move(exchange), shard_, std::move(speech_));
  }
  void Refuse(const Status& status) {
    ReplyError(*exchange_, shard_.api, status);
    Leave();
  }

  SpeechRequest speech_;
  std::unique_ptr<ReferenceLoad> load_;
};

}  // namespace

Status CheckSpeechModel(const ApiContext& api, std::string_view model) {
  if (api.models->MeansDefault(model) ||
      (api.pipeline != nullptr && model == api.pipeline->config().name)) {
    return OkStatus();
  }
  const Status found = api.models->Find(model).status();
  const bool unknown = found.code() == StatusCode::kNotFound && api.pipeline != nullptr;
  return unknown ? NoSuchModel(api, model, /*own=*/true) : found;
}

void HandleSpeech(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  const auto pipeline = PipelineFor(shard.api, pipeline::Task::kSpeech);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  auto speech = DecodeSpeech(exchange->request.body, shard.parser, **pipeline,
                             exchange->request.Header("accept"));
  if (speech.ok()) {
    if (Status model = CheckSpeechModel(shard.api, speech->model); !model.ok()) speech = model;
  }
  if (!speech.ok()) return ReplyError(*exchange, shard.api, speech.status());
  if (speech->request.id.empty()) speech->request.id = RequestIdOf(exchange->request);
  if (speech->sounds.empty()) return Speak(std::move(exchange), shard, *std::move(speech));
  std::string().swap(exchange->request.body);
  auto call = std::make_unique<LoadingSpeech>(std::move(exchange), shard, *std::move(speech));
  LoadingSpeech& loading = *call;
  shard.calls.Add(std::move(call));
  loading.Load();
}

std::string SpeechUsage(int64_t prompt_tokens, int64_t completion_tokens) {
  return fmt::format("{{\"input_tokens\":{},\"output_tokens\":{},\"total_tokens\":{}}}",
                     prompt_tokens, completion_tokens, prompt_tokens + completion_tokens);
}

void HandleSpeechOutcome(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  const auto pipeline = ThePipeline(shard.api);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  const std::string_view id = std::string_view(exchange->request.path).substr(kSpeechPath.size());
  auto outcome = (*pipeline)->outcomes().Find(id);
  if (!outcome) outcome = (*pipeline)->outcomes().Find(std::string(kSpeechId) + std::string(id));
  if (!outcome) {
    return ReplyError(
        *exchange, shard.api,
        Error(StatusCode::kNotFound,
              fmt::format("no finished speech has the id `{}`", id.substr(0, 64)), "request_id"));
  }
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("request_id").String(id);
  w.Key("finish_reason").String(outcome->finish_reason).Key("usage");
  w.Raw(outcome->has_usage ? SpeechUsage(outcome->prompt_tokens, outcome->completion_tokens)
                           : "null");
  if (!outcome->error.empty()) w.Key("error").String(outcome->error);
  w.EndObject();
  ReplyJson(*exchange, shard.api, 200, std::move(body));
}

}  // namespace portico::api::openai
