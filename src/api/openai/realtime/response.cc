#include "api/openai/realtime/response.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/openai/chat/decode_chat.h"
#include "api/openai/realtime/input_audio.h"
#include "api/reply.h"
#include "base/base64.h"
#include "base/error_type.h"

namespace portico::api::openai {
namespace {

using pipeline::EncodedPart;
using pipeline::FinishPart;
using pipeline::Part;
using pipeline::TextPart;
using pipeline::ToolCallPart;

}  // namespace

Response::Response(ResponseOwner& owner, ShardContext& shard, pipeline::Pipeline& pipeline,
                   ResponseOrder order)
    : owner_(owner),
      shard_(shard),
      pipeline_(pipeline),
      order_(std::move(order)),
      id_("resp_" + NewRequestId()) {
  owner_.Send("response.created", {{"response", ToJson("in_progress", Json())}});
}

bool Response::Makes(std::string_view item_id) const {
  return std::find(output_.begin(), output_.end(), item_id) != output_.end();
}

Json Response::ToJson(std::string_view status, Json details) {
  JsonArray output;
  Json usage;
  if (ended_) {
    usage = Json(JsonObject{{"total_tokens", input_tokens_ + output_tokens_},
                            {"input_tokens", input_tokens_},
                            {"output_tokens", output_tokens_}});
    for (const std::string& id : output_) {
      if (const RealtimeItem* item = Place().Find(id)) output.push_back(item->ToJson());
    }
  }
  return Json(JsonObject{
      {"object", "realtime.response"},
      {"id", id_},
      {"status", Json(status)},
      {"status_details", std::move(details)},
      {"output", Json(std::move(output))},
      {"output_modalities", Json(JsonArray{Json(order_.config.speaks ? "audio" : "text")})},
      {"metadata", order_.metadata},
      {"usage", std::move(usage)}});
}

JsonObject Response::At(size_t output) const {
  return {{"response_id", id_},
          {"item_id", output_[output]},
          {"output_index", static_cast<int64_t>(output)}};
}

// What the events of the message's only part have in common.
JsonObject Response::AtPart() const {
  JsonObject members = At(message_);
  members.emplace_back("content_index", 0);
  return members;
}

JsonObject Response::AtPart(std::string_view name, Json value) const {
  JsonObject members = AtPart();
  members.emplace_back(std::string(name), std::move(value));
  return members;
}

StatusOr<pipeline::Request> Response::MakeRequest() {
  const RealtimeConfig& config = order_.config;
  pipeline::Request request;
  request.task = pipeline::Task::kChat;
  request.id = id_;
  request.wants_text = true;
  request.wants_audio = config.speaks;
  PORTICO_RETURN_IF_ERROR(pipeline_.SetVoice(config.voice, &request));
  request.speech.format = media::AudioFormat::kPcm;
  request.speech.sample_rate = config.output_rate();
  request.speech.speed = config.speed;
  const Conversation& asked = order_.input ? *order_.input : owner_.conversation();
  Json body(JsonObject{{"model", config.model}, {"messages", asked.Messages(config.instructions)}});
  if (config.max_output_tokens) body.Set("max_tokens", Json(*config.max_output_tokens));
  if (config.temperature) body.Set("temperature", Json(*config.temperature));
  if (!config.tools.is_null()) body.Set("tools", config.ChatTools());
  // One that asks for a call is refused where there are no tools.
  const bool asks = config.tool_choice != Json("auto") && config.tool_choice != Json("none");
  if (asks || !config.tools.is_null()) body.Set("tool_choice", config.ChatToolChoice());
  PORTICO_ASSIGN_OR_RETURN(ChatRequest chat, DecodeChat(body.Dump(), shard_.parser));
  request.chat = std::make_shared<const ChatRequest>(std::move(chat));
  return request;
}

void Response::Begin() {
  if (std::exchange(begun_, true)) return;
  auto request = MakeRequest();
  if (!request.ok()) return OnDone(request.status());
  auto feed =
      PipelineFeed::Start(pipeline_, *std::move(request), shard_.shard,
                          {[this](Part piece) { OnPart(std::move(piece)); },
                           [this](const Status& status) { OnDone(status); }, &owner_.reader()});
  if (!feed.ok()) return OnDone(feed.status());
  feed_ = *std::move(feed);
}

size_t Response::AddItem(RealtimeItem item) {
  const size_t at = output_.size();
  item.id = "item_" + NewRequestId();
  item.status = "in_progress";
  output_.push_back(item.id);
  const RealtimeItem& added = Place().Append(std::move(item));
  owner_.Send(
      "response.output_item.added",
      {{"response_id", id_}, {"output_index", static_cast<int64_t>(at)}, {"item", added.ToJson()}});
  if (order_.outside) return at;
  const std::string before = Place().Before(added.id);
  owner_.Send(
      "conversation.item.added",
      {{"previous_item_id", before.empty() ? Json() : Json(before)}, {"item", added.ToJson()}});
  return at;
}

void Response::OpenMessage() {
  if (message_ != kNone) return;
  const bool speaks = order_.config.speaks;
  RealtimeItem item;
  item.role = "assistant";
  item.type = speaks ? "output_audio" : "output_text";
  message_ = AddItem(std::move(item));
  Json part(JsonObject{{"type", speaks ? "audio" : "text"}});
  part.Set(speaks ? "transcript" : "text", Json(""));
  owner_.Send("response.content_part.added", AtPart("part", std::move(part)));
}

void Response::OnPart(Part part) {
  if (ended_) return;
  if (const auto* text = std::get_if<TextPart>(&part)) {
    if (!text->text.empty()) OnText(text->text);
  } else if (const auto* sound = std::get_if<EncodedPart>(&part)) {
    OnSound(*sound);
  } else if (auto* call = std::get_if<ToolCallPart>(&part)) {
    OnCall(std::move(*call));
  } else if (const auto* finish = std::get_if<FinishPart>(&part)) {
    finish_ = finish->reason;
    input_tokens_ = finish->prompt_tokens;
    output_tokens_ = finish->completion_tokens;
  }
}

void Response::OnText(const std::string& text) {
  OpenMessage();
  text_ += text;
  owner_.Send(order_.config.speaks ? "response.output_audio_transcript.delta"
                                   : "response.output_text.delta",
              AtPart("delta", Json(text)));
}

void Response::OnSound(const EncodedPart& sound) {
  if (!order_.config.speaks) return;
  OpenMessage();
  audio_bytes_ += sound.bytes.size();
  owner_.Send("response.output_audio.delta",
              AtPart("delta", Json(ToBase64(EncodeSound(sound.bytes, order_.config.output)))));
}

void Response::OnCall(ToolCallPart piece) {
  if (call_ == kNone || piece.index != call_index_) {
    CloseCall("completed");
    RealtimeItem item;
    item.kind = RealtimeItem::Kind::kCall;
    item.name = std::move(piece.name);
    item.call_id = piece.id.empty() ? "call_" + NewRequestId() : std::move(piece.id);
    call_index_ = piece.index;
    call_ = AddItem(std::move(item));
  }
  if (piece.arguments.empty()) return;
  const RealtimeItem* item = Place().Change(
      output_[call_], [&piece](RealtimeItem& made) { made.text += piece.arguments; });
  if (item == nullptr) return;
  JsonObject members = At(call_);
  members.emplace_back("call_id", item->call_id);
  members.emplace_back("delta", std::move(piece.arguments));
  owner_.Send("response.function_call_arguments.delta", std::move(members));
}

void Response::TellEnd(size_t output, const RealtimeItem& item) {
  owner_.Send("response.output_item.done", {{"response_id", id_},
                                            {"output_index", static_cast<int64_t>(output)},
                                            {"item", item.ToJson()}});
  if (order_.outside) return;
  const std::string before = Place().Before(item.id);
  owner_.Send(
      "conversation.item.done",
      {{"previous_item_id", before.empty() ? Json() : Json(before)}, {"item", item.ToJson()}});
}

void Response::CloseCall(std::string_view status) {
  if (call_ == kNone) return;
  const size_t output = std::exchange(call_, kNone);
  const RealtimeItem* item =
      Place().Change(output_[output], [status](RealtimeItem& made) { made.status = status; });
  if (item == nullptr) return;
  if (status == "completed") {
    JsonObject members = At(output);
    members.emplace_back("call_id", item->call_id);
    members.emplace_back("name", item->name);
    members.emplace_back("arguments", item->text);
    owner_.Send("response.function_call_arguments.done", std::move(members));
  }
  TellEnd(output, *item);
}

int64_t Response::audio_ms() const {
  return static_cast<int64_t>(audio_bytes_) * 1000 / (int64_t{2} * order_.config.output_rate());
}

void Response::CloseMessage(std::string_view status) {
  // An answer without a word is an empty message.
  if (output_.empty() && begun_) OpenMessage();
  if (message_ == kNone) return;
  const RealtimeItem* item = Place().Change(output_[message_], [&](RealtimeItem& made) {
    made.text = text_;
    made.status = status;
    made.audio_ms = audio_ms();
  });
  if (item == nullptr) return;
  const bool speaks = order_.config.speaks;
  if (speaks) {
    owner_.Send("response.output_audio.done", AtPart());
    owner_.Send("response.output_audio_transcript.done", AtPart("transcript", Json(text_)));
  } else {
    owner_.Send("response.output_text.done", AtPart("text", Json(text_)));
  }
  Json part(JsonObject{{"type", speaks ? "audio" : "text"}});
  part.Set(speaks ? "transcript" : "text", Json(text_));
  owner_.Send("response.content_part.done", AtPart("part", std::move(part)));
  TellEnd(message_, *item);
}

void Response::OnDone(const Status& status) {
  if (!status.ok()) {
    const int http = HttpStatus(status.code());
    const std::string_view code = http == 429  ? "rate_limit_exceeded"
                                  : http < 500 ? "invalid_value"
                                               : "server_error";
    const std::string reason = ReasonOf(status);
    Json error(JsonObject{{"type", ErrorType(http)},
                          {"code", reason.empty() ? Json(code) : Json(reason)},
                          {"message", MessageOf(status)}});
    return End("failed", Json(JsonObject{{"type", "failed"}, {"error", std::move(error)}}));
  }
  if (finish_ == "length") {
    return End("incomplete",
               Json(JsonObject{{"type", "incomplete"}, {"reason", "max_output_tokens"}}));
  }
  End("completed", Json());
}

void Response::Cancel(std::string_view reason) {
  feed_.reset();
  End("cancelled", Json(JsonObject{{"type", "cancelled"}, {"reason", Json(reason)}}));
}

void Response::End(std::string_view status, Json details) {
  if (std::exchange(ended_, true)) return;
  const std::string_view of_items = status == "completed" ? "completed" : "incomplete";
  CloseMessage(of_items);
  CloseCall(of_items);
  owner_.Send("response.done", {{"response", ToJson(status, std::move(details))}});
  const bool spoke = status == "completed" || status == "incomplete";
  owner_.OnResponseDone(
      {order_.outside, spoke && call_index_ < 0, std::chrono::milliseconds(audio_ms())});
}

}  // namespace portico::api::openai
