#include "api/openai/audio/speech/speech_socket.h"

#include <fmt/format.h>

#include <deque>
#include <utility>

#include "absl/strings/str_split.h"
#include "api/authorization.h"
#include "api/browser_rules.h"
#include "api/openai/audio/pipeline_call.h"
#include "api/openai/audio/pipeline_feed.h"
#include "api/openai/audio/speech/decode_speech.h"
#include "api/openai/audio/speech/speech_handler.h"
#include "api/openai/audio/voice/reference_load.h"
#include "api/reply.h"
#include "base/error_type.h"
#include "media/wav.h"
#include "net/websocket/web_socket.h"
#include "pipeline/speech/speakable.h"
#include "pipeline/speech/speech_filter.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

using pipeline::EncodedPart;
using pipeline::Part;

constexpr size_t kMaxFrame = 128 << 10;
constexpr size_t kMaxBuffered = 256 << 10;
constexpr size_t kUnreadErrors = 64 << 10;
constexpr auto kConfigTime = std::chrono::seconds(10);
constexpr auto kIdleTime = std::chrono::seconds(30);
constexpr std::string_view kKeyPrefix = "openai-insecure-api-key.";

// One connection. Sentences are spoken one after the other.
class SpeechSocket final : public Call {
 public:
  SpeechSocket(std::unique_ptr<net::WebSocket> socket, ShardContext& shard,
               pipeline::Pipeline& pipeline)
      : shard_(shard), pipeline_(pipeline), socket_(std::move(socket)), reader_(*socket_) {
    rid = "speech_ws_" + NewRequestId();
    socket_->set_on_message(
        [this](net::WsMessage::Kind kind, std::string_view data) { OnMessage(kind, data); });
    socket_->set_on_closed([this] { Leave(); });
    SetTimer(kConfigTime);
  }

  void Abort() override { Fail(Error(StatusCode::kCancelled, "the session was aborted")); }

 private:
  void Leave() {
    feed_.reset();
    load_.reset();
    shard_.calls.Remove(this);
  }

  void SetTimer(Duration limit) {
    timer_ = shard_.shard.After(limit, [this] {
      if (feed_ != nullptr || load_ != nullptr || later_) return SetTimer(kIdleTime);
      Fail(Error(StatusCode::kDeadlineExceeded, configured_ ? "no message was received for 30 s"
                                                            : "no session.config came in 10 s"));
    });
  }

  // Tells why, and closes.
  void Fail(const Status& status) {
    SendError(status);
    socket_->Close(net::kWsNormal, "");
    Leave();
  }

  void SendError(const Status& status) {
    std::string text;
    JsonWriter w(&text);
    w.BeginObject().Key("type").String("error").Key("message").String(MessageOf(status));
    w.Key("error_type").String(ErrorType(HttpStatus(status.code())));
    if (!FieldOf(status).empty()) w.Key("param").String(FieldOf(status));
    w.Key("code").Int(HttpStatus(status.code())).EndObject();
    socket_->SendText(text);
  }

  void OnMessage(net::WsMessage::Kind kind, std::string_view data) {
    if (left_) return;
    SetTimer(kIdleTime);
    const auto bad = [](std::string why) { return InvalidArgument("type", std::move(why)); };
    if (kind != net::WsMessage::kText) return Fail(bad("only text frames are read"));
    auto message = Json::Parse(data);
    if (!message.ok() || !message->is_object()) {
      return Fail(bad("a message must be a JSON object"));
    }
    const std::string type = message->GetString("type");
    if (!configured_) {
      if (type != "session.config") return Fail(bad("the first message must be session.config"));
      if (Status status = Configure(*std::move(message)); !status.ok()) Fail(status);
      return;
    }
    if (type == "input.cancel") return Cancel();
    if (done_) return SendError(bad("input.done has been sent"));
    if (type == "input.text") {
      const Json* text = message->Find("text");
      if (text == nullptr || !text->is_string()) {
        return SendError(InvalidArgument("text", "input.text needs a text"));
      }
      splitter_.Feed(filter_.Feed(text->as_string()));
      if (waiting_bytes_ + splitter_.pending_bytes() > kMaxBuffered) {
        return Fail(Error(StatusCode::kResourceExhausted, "too much text waits to be spoken"));
      }
    } else if (type == "input.commit") {
      Flush();
      socket_->SendText(R"({"type":"input.committed"})");
    } else if (type == "input.done") {
      done_ = true;
      Flush();
    } else {
      return SendError(bad(fmt::format("there is no message `{}`", type.substr(0, 64))));
    }
    Gather();
    SpeakNext();
  }

  Status Configure(Json message) {
    auto& fields = message.as_object();
    std::erase_if(fields, [](const auto& field) { return field.second.is_null(); });
    std::string granularity = "sentence";
    if (const Json* streams = message.Find("stream_audio"); streams != nullptr) {
      if (!streams->is_bool()) {
        return InvalidArgument("stream_audio", "stream_audio must be true or false");
      }
      stream_audio_ = streams->as_bool();
    }
    if (const Json* split = message.Find("split_granularity"); split != nullptr) {
      granularity = split->is_string() ? split->as_string() : "";
    }
    std::erase_if(fields, [](const auto& field) {
      return field.first == "type" || field.first == "stream_audio" ||
             field.first == "split_granularity" || field.first == "request_id";
    });
    if (granularity != "sentence" && granularity != "clause") {
      return InvalidArgument("split_granularity", "split_granularity must be sentence or clause");
    }
    if (message.Find("response_format") == nullptr) message.Set("response_format", Json("pcm"));
    message.Set("input", Json("x"));
    PORTICO_ASSIGN_OR_RETURN(SpeechRequest speech,
                             DecodeSpeech(message.Dump(), shard_.parser, pipeline_, ""));
    PORTICO_RETURN_IF_ERROR(CheckSpeechModel(shard_.api, speech.model));
    spoken_ = std::move(speech.request);
    PORTICO_RETURN_IF_ERROR(pipeline_.Check(spoken_));
    splitter_ = NewSplitter(granularity == "clause");
    clauses_ = granularity == "clause";
    configured_ = true;
    if (speech.sounds.empty()) {
      TellConfigured();
      return OkStatus();
    }
    load_ = ReferenceLoad::Start(shard_, std::move(speech.sounds),
                                 [this](auto sounds) { OnLoaded(std::move(sounds)); });
    return OkStatus();
  }

  // What came meanwhile waits to be spoken.
  void OnLoaded(StatusOr<ReferenceLoad::Sounds> sounds) {
    if (!sounds.ok()) return Fail(sounds.status());
    GiveSounds(*sounds, &spoken_);
    load_.reset();
    TellConfigured();
    SpeakNext();
  }

  void TellConfigured() {
    std::string text;
    JsonWriter w(&text);
    w.BeginObject().Key("type").String("session.configured").Key("session_id").String(rid);
    w.Key("response_format").String(media::AudioFormatName(spoken_.speech.format));
    w.Key("stream_audio").Bool(stream_audio_);
    w.Key("split_granularity").String(clauses_ ? "clause" : "sentence").EndObject();
    socket_->SendText(text);
  }

  static pipeline::ClauseSplitter NewSplitter(bool clauses) {
    return pipeline::ClauseSplitter(clauses);
  }

  // The text so far is whole: what has no end of a sentence is one.
  void Flush() {
    splitter_.Feed(filter_.Finish());
    splitter_.Finish();
    Gather();
    splitter_ = NewSplitter(clauses_);
  }

  void Gather() {
    for (std::string clause = splitter_.Next(); !clause.empty(); clause = splitter_.Next()) {
      waiting_bytes_ += clause.size();
      waiting_.push_back(std::move(clause));
    }
  }

  // Drops the sentence that is spoken and those that wait, also after input.done: who interrupts
  // does so when all text has been sent.
  void Cancel() {
    waiting_.clear();
    if (std::exchange(later_, false)) socket_->CallWhenBelow(0, nullptr);
    splitter_ = NewSplitter(clauses_);
    filter_ = {};
    waiting_bytes_ = 0;
    std::string text;
    JsonWriter w(&text);
    w.BeginObject().Key("type").String("audio.cancelled").Key("sentence_index");
    if (feed_ != nullptr) {
      feed_.reset();
      w.Int(index_++);
    } else {
      w.Null();
    }
    w.Key("reason").String("client_cancelled").EndObject();
    socket_->SendText(text);
    SpeakNext();
  }

  void SpeakNext() {
    if (load_ != nullptr || later_) return;
    if (feed_ == nullptr && !waiting_.empty()) {
      sentence_ = std::move(waiting_.front());
      waiting_.pop_front();
      waiting_bytes_ -= sentence_.size();
      pipeline::Request request = spoken_;
      request.id = fmt::format("{}-{}", rid, index_);
      request.inputs = {pipeline::TextPart{sentence_}};
      started_ = false;
      bytes_ = 0;
      audio_.clear();
      auto feed =
          PipelineFeed::Start(pipeline_, std::move(request), shard_.shard,
                              {[this](Part part) { OnPart(std::move(part)); },
                               [this](const Status& status) { OnSpoken(status); }, &reader_});
      if (feed.ok()) {
        feed_ = *std::move(feed);
        return;
      }
      SendError(feed.status());
      EndSentence(/*failed=*/true);
      if (!waiting_.empty()) return SpeakLater();
    }
    if (!done_ || feed_ != nullptr) return;
    std::string text;
    JsonWriter w(&text);
    w.BeginObject().Key("type").String("session.done").Key("session_id").String(rid);
    w.Key("total_sentences").Int(index_).EndObject();
    socket_->SendText(text);
    socket_->Close(net::kWsNormal, "");
    left_ = true;
    Leave();
  }

  // Thousands of sentences may be refused one after the other: each in a turn of the shard of its own,
  // and not faster than the client reads.
  void SpeakLater() {
    later_ = true;
    socket_->CallWhenBelow(kUnreadErrors, [this] {
      later_ = false;
      SpeakNext();
    });
  }

  void OnPart(Part part) {
    const auto* encoded = std::get_if<EncodedPart>(&part);
    if (encoded == nullptr) return;
    if (!std::exchange(started_, true)) StartSentence(encoded->sample_rate);
    bytes_ += encoded->bytes.size();
    if (stream_audio_) {
      socket_->SendBinary(encoded->bytes);
    } else {
      audio_ += encoded->bytes;
    }
  }

  void StartSentence(int32_t sample_rate) {
    std::string text;
    JsonWriter w(&text);
    w.BeginObject().Key("type").String("audio.start");
    w.Key("id").String(fmt::format("{}-{}", rid, index_)).Key("sentence_index").Int(index_);
    w.Key("sentence_text").String(sentence_);
    w.Key("format").String(media::AudioFormatName(spoken_.speech.format));
    w.Key("sample_rate").Int(sample_rate).EndObject();
    socket_->SendText(text);
  }

  void OnSpoken(const Status& status) {
    feed_.reset();
    if (!status.ok()) SendError(status);
    if (!started_) StartSentence(spoken_.speech.sample_rate);
    if (!audio_.empty()) {
      if (spoken_.speech.format == media::AudioFormat::kWav) media::SetWavSizes(&audio_);
      socket_->SendBinary(audio_);
    }
    EndSentence(!status.ok());
    SpeakNext();
  }

  void EndSentence(bool failed) {
    std::string text;
    JsonWriter w(&text);
    w.BeginObject().Key("type").String("audio.done");
    w.Key("id").String(fmt::format("{}-{}", rid, index_)).Key("sentence_index").Int(index_);
    w.Key("total_bytes").Int(static_cast<int64_t>(bytes_)).Key("error").Bool(failed).EndObject();
    socket_->SendText(text);
    ++index_;
  }

  ShardContext& shard_;
  pipeline::Pipeline& pipeline_;
  std::unique_ptr<net::WebSocket> socket_;
  FeedReader reader_;
  std::unique_ptr<net::Shard::Timer> timer_;
  std::unique_ptr<PipelineFeed> feed_;   // of the sentence that is spoken
  std::unique_ptr<ReferenceLoad> load_;  // of the voice to imitate, until it is there
  pipeline::Request spoken_;             // what all sentences have in common
  pipeline::SpeechFilter filter_;
  pipeline::ClauseSplitter splitter_;
  std::deque<std::string> waiting_;
  size_t waiting_bytes_ = 0;
  std::string sentence_;
  std::string audio_;
  size_t bytes_ = 0;
  int64_t index_ = 0;
  bool clauses_ = false;
  bool stream_audio_ = false;
  bool configured_ = false;
  bool done_ = false;
  bool started_ = false;
  bool later_ = false;  // the sentence behind a refused one waits for the client, without a feed
  bool left_ = false;
};

// The items of Sec-WebSocket-Protocol.
std::vector<std::string> Protocols(const net::HttpRequest& request) {
  std::vector<std::string> items =
      absl::StrSplit(std::string(request.Header("sec-websocket-protocol")), ',');
  for (std::string& item : items) {
    item.erase(0, std::min(item.find_first_not_of(' '), item.size()));
    while (!item.empty() && item.back() == ' ') item.pop_back();
  }
  return items;
}

}  // namespace

Status AdmitSocket(const net::HttpRequest& request, const ApiContext& api) {
  Status key = CheckApiKey(request, api.api_key);
  for (const std::string& protocol : Protocols(request)) {
    const bool shows = protocol.starts_with(kKeyPrefix);
    if (shows && !key.ok() && request.Header("authorization").empty()) {
      key = CheckApiKey("Bearer " + protocol.substr(kKeyPrefix.size()), api.api_key);
    }
  }
  PORTICO_RETURN_IF_ERROR(key);
  if (request.late) return Error(StatusCode::kUnavailable, "the server is draining");
  return CheckPage(request, {&api.cors_origin, 1});
}

std::string ChosenProtocol(const net::HttpRequest& request) {
  for (const std::string& protocol : Protocols(request)) {
    if (protocol == "realtime") return protocol;
  }
  return "";
}

void HandleSpeechSocket(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  const Status admitted = AdmitSocket(exchange->request, shard.api);
  if (!admitted.ok()) return ReplyError(*exchange, shard.api, admitted);
  const auto pipeline = PipelineFor(shard.api, pipeline::Task::kSpeech);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  auto socket = net::WebSocket::Accept(std::move(exchange), {kMaxFrame, ""});
  if (socket == nullptr) return;
  shard.calls.Add(std::make_unique<SpeechSocket>(std::move(socket), shard, **pipeline));
}

}  // namespace portico::api::openai
