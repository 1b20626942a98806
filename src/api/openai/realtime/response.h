// One response of a realtime session and the events that tell of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/context.h"
#include "api/openai/audio/pipeline_feed.h"
#include "api/openai/realtime/conversation.h"
#include "api/openai/realtime/session_config.h"
#include "base/clock.h"
#include "pipeline/coordinator/pipeline.h"

namespace portico::api::openai {

// How a response has ended.
struct ResponseEnd {
  bool outside = false;  // it was no part of the conversation
  // It has spoken, be it not to its end, and calls no function: it is the user's turn.
  bool answered = false;
  Duration sound = Duration::zero();  // what the client plays now
};

// The session, as its response sees it.
class ResponseOwner {
 public:
  virtual ~ResponseOwner() = default;
  virtual void Send(std::string_view type, JsonObject members) = 0;
  virtual Conversation& conversation() = 0;
  // Where its parts go, as long as the session is there.
  virtual FeedReader& reader() = 0;
  // response.done has been sent. Keeps the response to the end of the turn.
  virtual void OnResponseDone(const ResponseEnd& end) = 0;
};

// What response.create says.
struct ResponseOrder {
  RealtimeConfig config;  // this response's own
  // What is answered, instead of the conversation.
  std::optional<Conversation> input;
  // "conversation": "none": the conversation neither waits for it nor gets what it says.
  bool outside = false;
  Json metadata;

  // `event` has `response`, or not. INVALID_ARGUMENT names the field.
  static StatusOr<ResponseOrder> Read(const Json& event, const RealtimeConfig& session,
                                      const pipeline::Pipeline& pipeline,
                                      Conversation& conversation);
};

// On its shard. Destroying it stops the work without a word.
class Response {
 public:
  // Sends response.created.
  Response(ResponseOwner& owner, ShardContext& shard, pipeline::Pipeline& pipeline,
           ResponseOrder order);

  // Once everything in the conversation has been heard; a second call does nothing.
  void Begin();
  // `reason`: client_cancelled, turn_detected.
  void Cancel(std::string_view reason);
  const std::string& id() const { return id_; }
  bool waits() const { return !order_.outside && !order_.input; }
  // The item is one that this response makes now.
  bool Makes(std::string_view item_id) const;

 private:
  void OnPart(pipeline::Part part);
  void OnText(const std::string& text);
  void OnSound(const pipeline::EncodedPart& sound);
  void OnCall(pipeline::ToolCallPart piece);
  void OnDone(const Status& status);
  void End(std::string_view status, Json details);

  // Where the items of this response are.
  Conversation& Place() { return order_.outside ? own_ : owner_.conversation(); }
  // Adds an item to the output and tells of it; its index there.
  size_t AddItem(RealtimeItem item);
  // The message, which begins with the first text or sound.
  void OpenMessage();
  void CloseMessage(std::string_view status);
  void CloseCall(std::string_view status);
  int64_t audio_ms() const;
  void TellEnd(size_t output, const RealtimeItem& item);
  JsonObject At(size_t output) const;
  JsonObject AtPart() const;
  JsonObject AtPart(std::string_view name, Json value) const;
  Json ToJson(std::string_view status, Json details);
  StatusOr<pipeline::Request> MakeRequest();

  ResponseOwner& owner_;
  ShardContext& shard_;
  pipeline::Pipeline& pipeline_;
  const ResponseOrder order_;
  const std::string id_;
  Conversation own_;                 // of a response outside
  std::vector<std::string> output_;  // ids of items
  static constexpr size_t kNone = SIZE_MAX;
  size_t message_ = kNone;  // in output_
  size_t call_ = kNone;     // the one that is being made
  int32_t call_index_ = -1;
  bool begun_ = false;
  bool ended_ = false;
  std::string text_;
  size_t audio_bytes_ = 0;  // at the output's rate, 16 bit
  std::string finish_;
  int64_t input_tokens_ = 0;
  int64_t output_tokens_ = 0;
  std::unique_ptr<PipelineFeed> feed_;
};

}  // namespace portico::api::openai
