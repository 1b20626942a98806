#include "api/openai/audio/speech_batch.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "api/exchange_call.h"
#include "api/openai/audio/chat_stage_fields.h"
#include "api/openai/audio/decode_speech.h"
#include "api/openai/audio/pipeline_call.h"
#include "api/openai/audio/pipeline_feed.h"
#include "api/openai/audio/speech_handler.h"
#include "api/openai/errors.h"
#include "api/reply.h"
#include "media/wav.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

using pipeline::Part;

constexpr size_t kMostItems = 32;
// Of sound, encoded, in one answer.
constexpr size_t kMostBytes = 64 << 20;

struct Item {
  std::optional<pipeline::Request> request;  // taken when it starts
  media::AudioFormat format = media::AudioFormat::kWav;
  std::unique_ptr<PipelineFeed> feed;
  std::string audio;
  std::string finish_reason = "stop";
  Status status;
  bool done = false;
};

// An error of item `index`, its field under the item's name.
Status OfItem(size_t index, const Status& status) {
  const std::string field(FieldOf(status));
  return Error(status.code(), std::string(MessageOf(status)),
               field.empty() ? field : fmt::format("items.{}.{}", index, field), ReasonOf(status));
}

// All items run at once, as far as the pipeline lets them in.
class BatchCall final : public ExchangeCall {
 public:
  BatchCall(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, std::vector<Item> items)
      : ExchangeCall(std::move(exchange), shard), items_(std::move(items)) {
    rid = "speech-batch-" + NewRequestId();
  }

  void Abort() override {
    exchange_->NoteAbort();
    for (Item& item : items_) item.feed.reset();
    ReplyError(*exchange_, shard_.api, Error(StatusCode::kCancelled, "the request was aborted"));
    Leave();
  }

  // In the table already: what is done may end it.
  void Start() {
    for (size_t i = 0; i < items_.size(); ++i) StartItem(i);
    AnswerIfDone();
  }

 private:
  void StartItem(size_t index) {
    Item& item = items_[index];
    if (!item.status.ok()) {
      item.done = true;
      return;
    }
    item.request->id = fmt::format("{}-{}", rid, index);
    auto feed = PipelineFeed::Start(
        *shard_.api.pipeline, *std::move(item.request), shard_.shard,
        {[this, index](Part part) { OnPart(index, std::move(part)); },
         [this, index](const Status& status) { OnDone(index, status); }, [] { return size_t{0}; }});
    if (feed.ok()) {
      item.feed = *std::move(feed);
    } else {
      item.status = OfItem(index, feed.status());
      item.done = true;
    }
  }

  void OnPart(size_t index, Part part) {
    Item& item = items_[index];
    if (const auto* finish = std::get_if<pipeline::FinishPart>(&part)) {
      item.finish_reason = finish->reason;
    }
    const auto* encoded = std::get_if<pipeline::EncodedPart>(&part);
    if (encoded == nullptr) return;
    bytes_ += encoded->bytes.size();
    item.audio += encoded->bytes;
    if (bytes_ <= kMostBytes) return;
    Finish(index, Error(StatusCode::kResourceExhausted,
                        fmt::format("the batch has more than {} MB of sound", kMostBytes >> 20)));
  }

  void OnDone(size_t index, const Status& status) { Finish(index, status); }

  void Finish(size_t index, const Status& status) {
    Item& item = items_[index];
    item.done = true;
    item.status = OfItem(index, status);
    item.feed.reset();
    if (status.ok() && item.audio.empty()) {
      item.status = Error(StatusCode::kInternal, "the pipeline made no sound");
    }
    if (!item.status.ok()) {
      bytes_ -= item.audio.size();
      std::string().swap(item.audio);
    }
    AnswerIfDone();
  }

  void AnswerIfDone() {
    for (const Item& item : items_) {
      if (!item.done) return;
    }
    std::string body;
    JsonWriter w(&body);
    int64_t failed = 0;
    w.BeginObject().Key("id").String(rid).Key("results").BeginArray();
    for (size_t i = 0; i < items_.size(); ++i) {
      w.BeginObject().Key("index").Int(static_cast<int64_t>(i));
      AppendItem(&items_[i], &w);
      w.EndObject();
      if (!items_[i].status.ok()) ++failed;
    }
    const auto total = static_cast<int64_t>(items_.size());
    w.EndArray().Key("total").Int(total).Key("succeeded").Int(total - failed);
    w.Key("failed").Int(failed).EndObject();
    ReplyJson(*exchange_, shard_.api, 200, std::move(body));
    Leave();
  }

  static void AppendItem(Item* item, JsonWriter* w) {
    if (!item->status.ok()) {
      const std::string error = ErrorBody(item->status);  // {"error":{…}}
      w->Key("status").String("error").Key("error");
      w->Raw(std::string_view(error).substr(9, error.size() - 10));
      return;
    }
    if (item->format == media::AudioFormat::kWav) media::SetWavSizes(&item->audio);
    std::string base64;
    absl::Base64Escape(item->audio, &base64);
    std::string().swap(item->audio);
    w->Key("status").String("success").Key("audio_data").String(base64);
    w->Key("format").String(media::AudioFormatName(item->format));
    w->Key("media_type").String(media::MediaType(item->format));
    w->Key("finish_reason").String(item->finish_reason);
  }

  std::vector<Item> items_;
  size_t bytes_ = 0;
};

// One item with the batch's fields where it has none of its own.
Item ReadItem(size_t index, const Json& given, const Json& defaults, ShardContext& shard) {
  Item item;
  if (!given.is_object()) {
    item.status = InvalidArgument(fmt::format("items.{}", index), "an item must be an object");
    return item;
  }
  Json merged = defaults;
  for (const auto& [name, value] : given.as_object()) {
    if (name == "stream" || name == "stream_format") {
      item.status = InvalidArgument(fmt::format("items.{}.{}", index, name),
                                    fmt::format("{} is no field of an item", name));
      return item;
    }
    merged.Set(name, value);
  }
  auto speech = DecodeSpeech(merged.Dump(), shard.parser, *shard.api.pipeline, "");
  if (speech.ok()) {
    if (Status model = CheckSpeechModel(shard.api, speech->model); !model.ok()) speech = model;
  }
  if (!speech.ok()) {
    item.status = OfItem(index, speech.status());
    return item;
  }
  item.format = speech->request.speech.format;
  item.request = std::move(speech->request);
  return item;
}

StatusOr<std::vector<Item>> ReadBatch(const std::string& body, ShardContext& shard) {
  auto root = Json::Parse(body);
  if (!root.ok() || !root->is_object()) {
    return InvalidArgument("", "the body must be a JSON object");
  }
  const Json items = TakeMember("items", &*root);
  const Json stream = TakeMember("stream", &*root);
  if (!stream.is_null() && stream != Json(false)) {
    return InvalidArgument("stream", "stream is not supported for batches of speech");
  }
  if (root->Find("stream_format") != nullptr || root->Find("input") != nullptr) {
    return InvalidArgument("items", "a batch has neither input nor stream_format of its own");
  }
  if (!items.is_array() || items.as_array().empty() || items.as_array().size() > kMostItems) {
    return InvalidArgument("items",
                           fmt::format("items must be a list of 1 to {} requests", kMostItems));
  }
  std::vector<Item> read;
  for (size_t i = 0; i < items.as_array().size(); ++i) {
    read.push_back(ReadItem(i, items.as_array()[i], *root, shard));
  }
  return read;
}

}  // namespace

void HandleSpeechBatch(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  const auto pipeline = ThePipeline(shard.api);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  auto items = ReadBatch(exchange->request.body, shard);
  if (!items.ok()) return ReplyError(*exchange, shard.api, items.status());
  auto call = std::make_unique<BatchCall>(std::move(exchange), shard, *std::move(items));
  BatchCall& batch = *call;
  shard.calls.Add(std::move(call));
  batch.Start();
}

}  // namespace portico::api::openai
