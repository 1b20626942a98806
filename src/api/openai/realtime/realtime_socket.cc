#include "api/openai/realtime/realtime_socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "api/openai/audio/pipeline_call.h"
#include "api/openai/audio/pipeline_feed.h"
#include "api/openai/audio/speech/speech_socket.h"
#include "api/openai/realtime/beta_events.h"
#include "api/openai/realtime/conversation.h"
#include "api/openai/realtime/idle_timeout.h"
#include "api/openai/realtime/input_audio.h"
#include "api/openai/realtime/open_session.h"
#include "api/openai/realtime/response.h"
#include "api/openai/realtime/session_config.h"
#include "api/openai/realtime/turn_end.h"
#include "api/reply.h"
#include "base/base64.h"
#include "base/error_type.h"
#include "net/websocket/web_socket.h"

namespace portico::api::openai {
namespace {

using pipeline::HeardPart;
using pipeline::Part;
using pipeline::TextPart;

constexpr size_t kMaxMessage = 4 << 20;
constexpr int64_t kMinCommitMs = 100;
constexpr auto kIdleTime = std::chrono::minutes(10);

class RealtimeSocket final : public Call, public ResponseOwner {
 public:
  RealtimeSocket(std::unique_ptr<net::WebSocket> socket, ShardContext& shard,
                 pipeline::Pipeline& pipeline, RealtimeConfig config)
      : shard_(shard),
        pipeline_(pipeline),
        config_(std::move(config)),
        socket_(std::move(socket)),
        reader_(*socket_),
        idle_(shard_.shard, [this](int64_t begin_ms) { OnIdle(begin_ms); }) {
    rid = config_.id;
    input_.Configure(config_);
    socket_->set_on_message(
        [this](net::WsMessage::Kind kind, std::string_view data) { OnMessage(kind, data); });
    socket_->set_on_closed([this] { Leave(); });
    SetTimer();
    Send("session.created", {{"session", config_.ToJson()}});
  }

  void Abort() override {
    socket_->Close(net::kWsGoingAway, "the session was aborted");
    Leave();
  }

 private:
  void Leave() {
    idle_.Stop();
    response_.reset();
    pause_.reset();
    hearing_.clear();
    shard_.calls.Remove(this);
  }

  void SetTimer() {
    timer_ = shard_.shard.After(kIdleTime, [this] {
      socket_->Close(net::kWsNormal, "no event was received for ten minutes");
      Leave();
    });
  }

  // ResponseOwner
  void Send(std::string_view name, JsonObject members) override {
    std::string type(name);
    if (config_.beta && !ToBeta(config_, &type, &members)) return;
    JsonObject event{{"type", Json(type)}, {"event_id", "event_" + NewRequestId()}};
    for (auto& member : members) event.push_back(std::move(member));
    socket_->SendText(Json(std::move(event)).Dump());
  }
  Conversation& conversation() override { return conversation_; }
  FeedReader& reader() override { return reader_; }
  void OnResponseDone(const ResponseEnd& end) override {
    // It is on the stack.
    shard_.shard.AtEndOfTurn([gone = std::shared_ptr<Response>(std::move(response_))] {});
    if (end.outside) return idle_.Release();
    if (end.answered && !input_.speaking()) idle_.Answered(end.sound, input_.position_ms(config_));
  }

  // The silence is a turn, for the model to go on. Its sound stays: words may begin in it.
  void OnIdle(int64_t begin_ms) {
    const std::string id = "item_" + NewRequestId();
    const int64_t end_ms = input_.position_ms(config_);
    Send("input_audio_buffer.timeout_triggered", {{"audio_start_ms", std::min(begin_ms, end_ms)},
                                                  {"audio_end_ms", end_ms},
                                                  {"item_id", id}});
    Commit({}, id);
    if (config_.create_response) MakeResponse({config_, {}, false, {}});
  }

  void SendError(const Status& status, std::string_view client_event) {
    const std::string field = FieldOf(status);
    const std::string reason = ReasonOf(status);
    Json error(JsonObject{{"type", ErrorType(HttpStatus(status.code()))},
                          {"code", reason.empty() ? Json("invalid_value") : Json(reason)},
                          {"message", MessageOf(status)},
                          {"param", field.empty() ? Json() : Json(field)},
                          {"event_id", client_event.empty() ? Json() : Json(client_event)}});
    Send("error", {{"error", std::move(error)}});
  }

  void OnMessage(net::WsMessage::Kind kind, std::string_view data) {
    SetTimer();
    auto message = kind == net::WsMessage::kText ? Json::Parse(data) : StatusOr<Json>(Json());
    if (!message.ok() || !message->is_object()) {
      return SendError(Error(StatusCode::kInvalidArgument,
                             "an event must be a JSON object in a text frame", {}, "invalid_event"),
                       "");
    }
    if (config_.beta) message = FromBeta(*std::move(message));
    const Status status = Handle(message->GetString("type"), *message);
    if (!status.ok()) SendError(status, message->GetString("event_id"));
  }

  Status Handle(const std::string& type, const Json& event) {
    if (type == "session.update") return UpdateSession(event);
    if (type == "input_audio_buffer.append") return AppendAudio(event);
    if (type == "input_audio_buffer.commit") return CommitByHand();
    if (type == "input_audio_buffer.clear") {
      pause_.reset();
      input_.Clear();
      Send("input_audio_buffer.cleared", {});
      return OkStatus();
    }
    if (config_.transcription) return Unknown(type);
    if (type == "conversation.item.create") return CreateItem(event);
    if (type == "conversation.item.delete") return DeleteItem(event);
    if (type == "conversation.item.retrieve") return RetrieveItem(event);
    if (type == "conversation.item.truncate") return TruncateItem(event);
    if (type == "response.create") return CreateResponse(event);
    if (type == "response.cancel") {
      if (response_ == nullptr) {
        return Error(StatusCode::kInvalidArgument, "no response is active", {},
                     "response_cancel_not_active");
      }
      const std::string id = event.GetString("response_id");
      if (!id.empty() && id != response_->id()) {
        return Error(StatusCode::kInvalidArgument, "no response of this id is active",
                     "response_id", "response_cancel_not_active");
      }
      response_->Cancel("client_cancelled");
      return OkStatus();
    }
    return Unknown(type);
  }

  static Status Unknown(const std::string& type) {
    return Error(StatusCode::kInvalidArgument,
                 type.empty() ? std::string("type is missing")
                              : fmt::format("there is no event `{}` here", type.substr(0, 64)),
                 "type", "invalid_event");
  }

  Status UpdateSession(const Json& event) {
    const Json* session = event.Find("session");
    if (session == nullptr) return InvalidArgument("session", "session is missing");
    const RealtimeConfig before = config_;
    PORTICO_RETURN_IF_ERROR(config_.Update(*session, pipeline_));
    if (before.vad != config_.vad || before.input != config_.input ||
        before.threshold != config_.threshold ||
        before.silence_duration_ms != config_.silence_duration_ms ||
        before.semantic_vad() != config_.semantic_vad()) {
      pause_.reset();
      input_.Configure(config_);
    }
    idle_.Configure(std::chrono::milliseconds(config_.vad ? config_.idle_timeout_ms : 0));
    Send("session.updated", {{"session", config_.ToJson()}});
    return OkStatus();
  }

  Status AppendAudio(const Json& event) {
    const Json* audio = event.Find("audio");
    std::string bytes;
    if (audio == nullptr || !audio->is_string() || !FromBase64(audio->as_string(), &bytes)) {
      return InvalidArgument("audio", "audio must be base64");
    }
    if (!WholeSamples(bytes, config_.input)) {
      return InvalidArgument("audio", "audio must be whole samples of two bytes");
    }
    std::vector<InputAudio::Turn> turns;
    if (!input_.Append(bytes, config_, &turns)) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("the input audio buffer holds {} s: commit or clear it",
                               InputAudio::kMaxSeconds),
                   "audio", "input_audio_buffer_full");
    }
    for (InputAudio::Turn& turn : turns) {
      // A pause that is over needs no judgement.
      if (turn.what == InputAudio::Turn::What::kPaused && &turn != &turns.back()) continue;
      OnTurn(std::move(turn));
    }
    return OkStatus();
  }

  void OnTurn(InputAudio::Turn turn) {
    switch (turn.what) {
      case InputAudio::Turn::What::kStarted:
        idle_.UserSpeaks();
        turn_item_ = "item_" + NewRequestId();
        Send("input_audio_buffer.speech_started",
             {{"audio_start_ms", turn.ms}, {"item_id", turn_item_}});
        // Who speaks is not spoken to.
        if (config_.interrupt_response && response_ != nullptr) response_->Cancel("turn_detected");
        return;
      case InputAudio::Turn::What::kPaused:
        return JudgePause(std::move(turn.sound));
      case InputAudio::Turn::What::kResumed:
        pause_.reset();
        return;
      case InputAudio::Turn::What::kStopped:
        pause_.reset();
        Send("input_audio_buffer.speech_stopped",
             {{"audio_end_ms", turn.ms}, {"item_id", turn_item_}});
        Commit(std::move(turn.sound), turn_item_);
        if (config_.create_response && !config_.transcription) {
          MakeResponse({config_, {}, false, {}});
        }
    }
  }

  // Hears what was said before the pause; where it looks finished, the turn ends.
  void JudgePause(media::Samples samples) {
    pause_text_.clear();
    auto feed = StartHearing(
        samples,
        {[this](const Part& part) { pause_text_ += HeardText(part, pause_text_).value_or(""); },
         [this](const Status& status) { OnPauseHeard(status); }, &reader_});
    if (feed.ok()) pause_ = *std::move(feed);  // else the longest pause ends it
  }

  void OnPauseHeard(const Status& status) {
    pause_.reset();
    if (!status.ok() || !LooksFinished(pause_text_)) return;
    if (auto turn = input_.EndTurn(config_)) OnTurn(*std::move(turn));
  }

  Status CommitByHand() {
    pause_.reset();
    media::Samples samples = input_.Take();
    if (static_cast<int64_t>(samples.size()) * 1000 / config_.input_rate() < kMinCommitMs) {
      return Error(StatusCode::kInvalidArgument,
                   fmt::format("the buffer must have {} ms of sound to commit", kMinCommitMs), {},
                   "input_audio_buffer_commit_empty");
    }
    idle_.UserSpeaks();
    Commit(std::move(samples), "item_" + NewRequestId());
    return OkStatus();
  }

  void Commit(media::Samples samples, std::string id) {
    // It has been announced: the client may have made an item of that id.
    if (conversation_.Find(id) != nullptr) id = "item_" + NewRequestId();
    RealtimeItem item;
    item.id = id;
    item.role = "user";
    item.type = "input_audio";
    item.unheard = true;
    conversation_.Append(std::move(item));
    Send("input_audio_buffer.committed", {{"previous_item_id", Previous(id)}, {"item_id", id}});
    TellItem(id);
    if (samples.empty()) return OnHeard(id, OkStatus());
    Hear(id, samples);
  }

  Json Previous(const std::string& id) const {
    const std::string before = conversation_.Before(id);
    return before.empty() ? Json() : Json(before);
  }

  void TellItem(const std::string& id) {
    for (const char* type : {"conversation.item.added", "conversation.item.done"}) {
      Send(type, {{"previous_item_id", Previous(id)}, {"item", conversation_.Find(id)->ToJson()}});
    }
  }

  StatusOr<std::unique_ptr<PipelineFeed>> StartHearing(media::SampleSpan samples,
                                                       PipelineFeed::Events events) {
    pipeline::Request request = config_.HearingRequest();
    request.id = NewRequestId();
    request.inputs.emplace_back(pipeline::FilePart{0, SoundFile(samples, config_)});
    return PipelineFeed::Start(pipeline_, std::move(request), shard_.shard, std::move(events));
  }

  // Hears an item's sound; a response that waits for it goes on then.
  void Hear(const std::string& id, media::SampleSpan samples) {
    auto feed = StartHearing(samples,
                             {[this, id](const Part& part) { OnHeardPart(id, part); },
                              [this, id](const Status& status) { OnHeard(id, status); }, &reader_});
    if (!feed.ok()) return OnHeard(id, feed.status());
    hearing_[id] = *std::move(feed);
  }

  // What a part adds to a text. Recognizers that know no times of words send text.
  static std::optional<std::string> HeardText(const Part& part, std::string_view before) {
    if (const auto* text = std::get_if<TextPart>(&part)) return text->text;
    const auto* heard = std::get_if<HeardPart>(&part);
    if (heard == nullptr) return std::nullopt;
    return (before.empty() ? "" : " ") + heard->text;
  }

  void OnHeardPart(const std::string& id, const Part& part) {
    std::optional<std::string> delta;
    const RealtimeItem* item = conversation_.Change(id, [&part, &delta](RealtimeItem& changed) {
      delta = HeardText(part, changed.text);
      changed.text += delta.value_or("");
    });
    if (item == nullptr || delta.value_or("").empty() || !tells_heard()) return;
    Send("conversation.item.input_audio_transcription.delta",
         {{"item_id", id}, {"content_index", 0}, {"delta", *std::move(delta)}});
  }

  bool tells_heard() const { return config_.transcribes || config_.transcription; }

  void OnHeard(const std::string& id, const Status& status) {
    hearing_.erase(id);
    const RealtimeItem* item =
        conversation_.Change(id, [](RealtimeItem& heard) { heard.unheard = false; });
    if (item != nullptr && tells_heard()) TellHeard(*item, status);
    BeginResponse();
  }

  void TellHeard(const RealtimeItem& item, const Status& status) {
    if (status.ok()) {
      Send("conversation.item.input_audio_transcription.completed",
           {{"item_id", item.id}, {"content_index", 0}, {"transcript", item.text}});
      return;
    }
    Json error(JsonObject{{"type", ErrorType(HttpStatus(status.code()))},
                          {"code", "audio_unintelligible"},
                          {"message", MessageOf(status)},
                          {"param", Json()}});
    Send("conversation.item.input_audio_transcription.failed",
         {{"item_id", item.id}, {"content_index", 0}, {"error", std::move(error)}});
  }

  Status CreateItem(const Json& event) {
    const Json* given = event.Find("item");
    if (given == nullptr) return InvalidArgument("item", "item is missing");
    std::string sound;
    PORTICO_ASSIGN_OR_RETURN(RealtimeItem item, ReadItem(*given, &sound));
    if (conversation_.Find(item.id) != nullptr) {
      return InvalidArgument("item.id", "there is an item of this id");
    }
    if (item.kind == RealtimeItem::Kind::kCallOutput && !conversation_.HasCall(item.call_id)) {
      return InvalidArgument("item.call_id", "no function was called by this id");
    }
    std::string bytes;
    if (item.unheard && !FromBase64(sound, &bytes)) {
      return InvalidArgument("item.content", "audio must be base64");
    }
    if (item.unheard && (bytes.empty() || !WholeSamples(bytes, config_.input))) {
      return InvalidArgument("item.content", bytes.empty()
                                                 ? "audio has no samples"
                                                 : "audio must be whole samples of two bytes");
    }
    const std::string id = item.id;
    const bool unheard = item.unheard;
    if (const std::string previous = event.GetString("previous_item_id"); !previous.empty()) {
      PORTICO_RETURN_IF_ERROR(conversation_.Insert(std::move(item), previous));
    } else {
      conversation_.Append(std::move(item));
    }
    TellItem(id);
    if (conversation_.Find(id)->role == "user") idle_.UserSpeaks();
    if (unheard) Hear(id, DecodeSound(bytes, config_.input));
    return OkStatus();
  }

  Status DeleteItem(const Json& event) {
    PORTICO_ASSIGN_OR_RETURN(const RealtimeItem* item,
                             ItemOf(conversation_, event, "item_delete_invalid_item_id"));
    const std::string id = item->id;
    if (response_ != nullptr && response_->Makes(id)) {
      return InvalidArgument("item_id", "the item is being made");
    }
    conversation_.Remove(id);
    Send("conversation.item.deleted", {{"item_id", id}});
    hearing_.erase(id);
    BeginResponse();
    return OkStatus();
  }

  Status RetrieveItem(const Json& event) {
    PORTICO_ASSIGN_OR_RETURN(const RealtimeItem* item,
                             ItemOf(conversation_, event, "item_retrieve_invalid_item_id"));
    Send("conversation.item.retrieved", {{"item", item->ToJson()}});
    return OkStatus();
  }

  Status TruncateItem(const Json& event) {
    PORTICO_ASSIGN_OR_RETURN(const RealtimeItem* item,
                             ItemOf(conversation_, event, "item_truncate_invalid_item_id"));
    PORTICO_ASSIGN_OR_RETURN(const int64_t end, Truncate(conversation_, *item, event));
    Send("conversation.item.truncated",
         {{"item_id", item->id}, {"content_index", 0}, {"audio_end_ms", end}});
    return OkStatus();
  }

  Status CreateResponse(const Json& event) {
    if (response_ != nullptr) {
      return Error(StatusCode::kInvalidArgument, "a response is active", {},
                   "conversation_already_has_active_response");
    }
    PORTICO_ASSIGN_OR_RETURN(ResponseOrder order,
                             ResponseOrder::Read(event, config_, pipeline_, conversation_));
    MakeResponse(std::move(order));
    return OkStatus();
  }

  void MakeResponse(ResponseOrder order) {
    if (response_ != nullptr) return;
    order.outside ? idle_.Hold() : idle_.Stop();
    response_ = std::make_unique<Response>(*this, shard_, pipeline_, std::move(order));
    BeginResponse();
  }

  // Once what it answers has been heard.
  void BeginResponse() {
    if (response_ == nullptr) return;
    if (!response_->waits() || !conversation_.unheard()) response_->Begin();
  }

  ShardContext& shard_;
  pipeline::Pipeline& pipeline_;
  RealtimeConfig config_;
  std::unique_ptr<net::WebSocket> socket_;
  FeedReader reader_;
  std::unique_ptr<net::Shard::Timer> timer_;
  IdleTimeout idle_;
  Conversation conversation_;
  InputAudio input_;
  std::string turn_item_;
  std::unique_ptr<PipelineFeed> pause_;  // hears what was said before the pause that is now
  std::string pause_text_;
  std::map<std::string, std::unique_ptr<PipelineFeed>> hearing_;  // by item
  std::unique_ptr<Response> response_;
};

}  // namespace

void HandleRealtime(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  const net::HttpRequest& request = exchange->request;
  Status status = AdmitSocket(request, shard.api);
  const auto pipeline = ThePipeline(shard.api);
  if (status.ok()) status = pipeline.status();
  RealtimeConfig config;
  if (status.ok()) status = OpenSession(request, shard.api, **pipeline, &config);
  if (!status.ok()) return ReplyError(*exchange, shard.api, status);
  std::string protocol = ChosenProtocol(request);
  auto socket = net::WebSocket::Accept(std::move(exchange), {kMaxMessage, std::move(protocol)});
  if (socket == nullptr) return;
  shard.calls.Add(
      std::make_unique<RealtimeSocket>(std::move(socket), shard, **pipeline, std::move(config)));
}

}  // namespace portico::api::openai
