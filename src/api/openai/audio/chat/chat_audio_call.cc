#include "api/openai/audio/chat/chat_audio_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/common/error_body.h"
#include "api/openai/audio/chat/chat_media.h"
#include "api/reply.h"
#include "base/base64.h"
#include "base/clock.h"
#include "media/wav.h"
#include "pipeline/chat_json.h"
#include "service/plain_chat.h"
#include "text/json_writer.h"
#include "tokenizer/decode/stop_matcher.h"

namespace portico::api::openai {
namespace {

using pipeline::EncodedPart;
using pipeline::FinishPart;
using pipeline::Part;
using pipeline::TextPart;
using pipeline::ToolCallPart;

constexpr int64_t kAudioLives = 3600;  // seconds, as OpenAI's audio ids

TokenUsage UsageOf(const FinishPart& finish) {
  TokenUsage usage;
  usage.prompt_tokens = static_cast<int32_t>(finish.prompt_tokens);
  usage.completion_tokens = static_cast<int32_t>(finish.completion_tokens);
  return usage;
}

struct Form {
  AnswerHead head;
  std::string audio_id;
  bool text = false;
  bool audio = false;
  media::AudioFormat format = media::AudioFormat::kWav;
  // Of a pipeline that thinks itself: engines look for them on their own.
  std::vector<std::string> stops;
  std::string clip_field;  // of the body, with what is heard
};

// Stages name the fields of speech and of transcriptions: the text is the sound's, or the chat's.
Status WithFieldOfChat(const Status& status, const Form& form) {
  const std::string field = FieldOf(status);
  if (field != "file" && field != "input") return status;
  const std::string of_chat = field == "file" ? form.clip_field : form.audio ? "audio" : "messages";
  return Error(status.code(), std::string(MessageOf(status)), of_chat, ReasonOf(status));
}

// A call as the answer spells it; `index` only in streams.
void AppendCall(const ToolCallPart& call, bool streamed, JsonWriter* w) {
  w->BeginObject();
  if (streamed) w->Key("index").Int(call.index);
  if (!call.id.empty()) w->Key("id").String(call.id).Key("type").String("function");
  w->Key("function").BeginObject();
  if (!call.name.empty()) w->Key("name").String(call.name);
  w->Key("arguments").String(call.arguments).EndObject().EndObject();
}

// For the client that sends the answer back by the id of its sound.
void KeepTranscript(const ApiContext& api, const Form& form, const std::string& text) {
  api.pipeline->transcripts().Add(form.audio_id, text, form.head.created + kAudioLives);
}

class WholeChat final : public PipelineCall {
 public:
  WholeChat(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, Form form)
      : PipelineCall(std::move(exchange), shard),
        form_(std::move(form)),
        stops_(form_.stops, /*no_stop_trim=*/false) {}

 protected:
  void OnPart(Part part) override {
    if (const auto* text = std::get_if<TextPart>(&part)) {
      stops_.Push(text->text, &text_);
    } else if (const auto* audio = std::get_if<EncodedPart>(&part)) {
      audio_ += audio->bytes;
      sample_rate_ = audio->sample_rate;
    } else if (auto* call = std::get_if<ToolCallPart>(&part)) {
      AddCall(std::move(*call));
    } else if (auto* finish = std::get_if<FinishPart>(&part)) {
      finish_ = std::move(*finish);
    }
  }

  void OnDone(const Status& status) override {
    if (!status.ok()) {
      return ReplyError(*exchange_, shard_.api, WithFieldOfChat(status, form_));
    }
    stops_.Flush(&text_);
    if (form_.format == media::AudioFormat::kWav) media::SetWavSizes(&audio_);
    std::string body;
    AppendAnswerHead(form_.head, "chat.completion", &body);
    JsonWriter w(&body);
    w.BeginObject().Key("index").Int(0).Key("message").BeginObject();
    w.Key("role").String("assistant").Key("content");
    if ((form_.text || audio_.empty()) && !(text_.empty() && !calls_.empty())) {
      w.String(text_);
    } else {
      w.Null();
    }
    w.Key(shard_.api.reasoning_field).Null();
    w.Key("refusal").Null();
    if (!calls_.empty()) {
      w.Key("tool_calls").BeginArray();
      for (const ToolCallPart& call : calls_) AppendCall(call, /*streamed=*/false, &w);
      w.EndArray();
    }
    if (form_.audio && !audio_.empty()) {
      KeepTranscript(shard_.api, form_, text_);
      w.Key("audio").BeginObject().Key("id").String(form_.audio_id);
      w.Key("data").String(ToBase64(audio_)).Key("transcript");
      if (text_.empty()) {
        w.Null();
      } else {
        w.String(text_);
      }
      w.Key("expires_at").Int(form_.head.created + kAudioLives);
      w.Key("sample_rate").Int(sample_rate_).EndObject();
    }
    w.EndObject().Key("finish_reason").String(finish_.reason.empty() ? "stop" : finish_.reason);
    w.EndObject();
    body += "],\"usage\":";
    AppendUsage(UsageOf(finish_), &body);
    body += '}';
    ReplyJson(*exchange_, shard_.api, 200, std::move(body));
  }

 private:
  void AddCall(ToolCallPart piece) {
    if (!piece.name.empty() || calls_.empty()) return calls_.push_back(std::move(piece));
    calls_.back().arguments += piece.arguments;
  }

  const Form form_;
  StopMatcher stops_;
  std::string text_;
  std::string audio_;
  std::vector<ToolCallPart> calls_;
  int32_t sample_rate_ = 0;
  FinishPart finish_;
};

class StreamedChat final : public PipelineCall {
 public:
  StreamedChat(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, Form form)
      : PipelineCall(std::move(exchange), shard),
        form_(std::move(form)),
        stops_(form_.stops, /*no_stop_trim=*/false) {}

 protected:
  void OnPart(Part part) override {
    if (const auto* text = std::get_if<TextPart>(&part)) {
      std::string certain;
      stops_.Push(text->text, &certain);
      SendText(certain);
    } else if (const auto* audio = std::get_if<EncodedPart>(&part)) {
      sounds_ = true;
      std::string delta;
      JsonWriter w(&delta);
      w.Key("audio").BeginObject().Key("id").String(form_.audio_id);
      w.Key("data").String(ToBase64(audio->bytes));
      w.Key("sample_rate").Int(audio->sample_rate).EndObject();
      Send(delta, {});
    } else if (const auto* call = std::get_if<ToolCallPart>(&part)) {
      std::string delta;
      JsonWriter w(&delta);
      w.Key("tool_calls").BeginArray();
      AppendCall(*call, /*streamed=*/true, &w);
      w.EndArray();
      Send(delta, {});
    } else if (auto* finish = std::get_if<FinishPart>(&part)) {
      finish_ = std::move(*finish);
    }
  }

  void OnDone(const Status& status) override {
    if (!status.ok() && !started_) {
      return ReplyError(*exchange_, shard_.api, WithFieldOfChat(status, form_));
    }
    if (status.ok()) {
      std::string rest;
      stops_.Flush(&rest);
      SendText(rest);
      if (form_.audio && sounds_) KeepTranscript(shard_.api, form_, text_);
      Send("", finish_.reason.empty() ? "stop" : finish_.reason);
      exchange_->Write(kDoneEvent);
    } else {
      std::string events;
      AppendErrorEvents(WithFieldOfChat(status, form_), &events);
      exchange_->Write(events);
    }
    exchange_->End();
  }

 private:
  void SendText(std::string_view text) {
    if (text.empty()) return;
    if (form_.audio) text_ += text;
    std::string delta;
    JsonWriter w(&delta);
    if (form_.text || !form_.audio) {
      w.Key("content").String(text);
    } else {
      w.Key("audio").BeginObject().Key("id").String(form_.audio_id);
      w.Key("transcript").String(text).EndObject();
    }
    Send(delta, {});
  }

  // An event whose delta has these members; with `reason` the last one.
  void Send(std::string_view members, std::string_view reason) {
    if (!started_) StartEvents();
    std::string event = "data: ";
    AppendAnswerHead(form_.head, "chat.completion.chunk", &event);
    event += R"({"index":0,"delta":{)";
    if (!std::exchange(started_, true)) {
      event += R"("role":"assistant",)";
    }
    event += members;
    if (!members.empty()) event += ',';
    JsonWriter(&event).Key(shard_.api.reasoning_field).Null();
    event += R"(},"finish_reason":)";
    if (reason.empty()) {
      event += "null}]}\n\n";
    } else {
      AppendJsonString(reason, &event);
      event += "}],\"usage\":";
      AppendUsage(UsageOf(finish_), &event);
      event += "}\n\n";
    }
    exchange_->Write(event);
  }

  const Form form_;
  StopMatcher stops_;
  std::string text_;
  FinishPart finish_;
  bool started_ = false;
  bool sounds_ = false;
};

// The served model that a stage of the pipeline is, or the pipeline where it thinks itself.
StatusOr<std::string> ModelOf(const ApiContext& api, const std::string& name) {
  const pipeline::Pipeline& pipeline = *api.pipeline;
  if (pipeline.thinks() && (api.models->MeansDefault(name) || name == pipeline.config().name)) {
    return pipeline.config().name;
  }
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, api.models->FindForRequest(name));
  return model->id;
}

Status CheckOwnThinker(const pipeline::Pipeline& pipeline, const ChatRequest& chat) {
  PORTICO_RETURN_IF_ERROR(CheckPlainChat(chat));
  const auto refuse = [](std::string_view field) {
    return InvalidArgument(field, fmt::format("{}: no stage of this pipeline supports it", field));
  };
  if (!chat.tools.is_null() && !pipeline.calls_tools()) return refuse("tools");
  if (pipeline.samples()) return OkStatus();
  const Json sampling = pipeline::SamplingJson(chat.options);
  for (const auto& [name, value] : sampling.as_object()) {
    if (name == "stop") continue;  // found here
    return refuse(name == "max_tokens" ? chat.options.max_tokens_field : name);
  }
  return OkStatus();
}

}  // namespace

void AnswerAudioChat(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, AudioChat chat) {
  pipeline::Request& request = chat.request;
  const auto pipeline = PipelineFor(shard.api, pipeline::Task::kChat);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  auto model = ModelOf(shard.api, request.chat->options.model);
  if (model.ok() && (*pipeline)->thinks()) {
    if (Status can = CheckOwnThinker(**pipeline, *request.chat); !can.ok()) model = can;
  }
  if (!model.ok()) return ReplyError(*exchange, shard.api, model.status());
  if (request.id.empty()) request.id = NewRequestId();
  if (!chat.media.empty()) {
    return FetchMedia(std::move(exchange), shard, std::move(chat), AnswerAudioChat);
  }
  Form form;
  form.head = MakeAnswerHead("chatcmpl-", request.chat->options.rid, *model);
  form.audio_id = "audio-" + NewSecretId();  // whoever has it can read the transcript
  form.text = request.wants_text;
  form.audio = request.wants_audio;
  form.format = request.speech.format;
  form.clip_field = std::move(chat.clip_field);
  if ((*pipeline)->thinks()) form.stops = request.chat->options.stop;
  std::unique_ptr<PipelineCall> call;
  if (request.chat->options.stream) {
    call = std::make_unique<StreamedChat>(std::move(exchange), shard, std::move(form));
  } else {
    call = std::make_unique<WholeChat>(std::move(exchange), shard, std::move(form));
  }
  LaunchPipeline(std::move(call), std::move(request), shard);
}

}  // namespace portico::api::openai
