#include "api/openai/audio/speech/speech_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "api/common/error_body.h"
#include "api/exchange_call.h"
#include "api/openai/audio/chat_stage_fields.h"
#include "api/openai/audio/pipeline_call.h"
#include "api/openai/audio/pipeline_feed.h"
#include "api/openai/audio/speech/decode_speech.h"
#include "api/openai/audio/speech/speech_handler.h"
#include "api/openai/audio/voice/reference_load.h"
#include "api/reply.h"
#include "base/base64.h"
#include "media/wav.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

using pipeline::Part;

constexpr size_t kMostItems = 32;
// Of sound, encoded, in one answer.
constexpr size_t kMostBytes = 64 << 20;
// Voices to imitate that items bring themselves; those of the batch are loaded once for all items.
constexpr size_t kMostOwnReferences = 8;
constexpr std::string_view kReferenceFields[] = {"ref_audio", "ref_text", "references"};

struct Item {
  std::optional<pipeline::Request> request;  // taken when it starts
  media::AudioFormat format = media::AudioFormat::kWav;
  std::vector<WantedSound> sounds;  // of its own references
  bool shares = false;              // it has those of the batch
  std::unique_ptr<ReferenceLoad> load;
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

struct Batch {
  std::vector<Item> items;
  std::vector<WantedSound> sounds;  // of the references that items share
};

// All items run at once, as far as the pipeline lets them in.
class BatchCall final : public ExchangeCall {
 public:
  BatchCall(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, Batch batch)
      : ExchangeCall(std::move(exchange), shard),
        items_(std::move(batch.items)),
        sounds_(std::move(batch.sounds)) {
    rid = "speech-batch-" + NewRequestId();
  }

  void Abort() override {
    exchange_->NoteAbort();
    load_.reset();
    for (Item& item : items_) {
      item.load.reset();
      item.feed.reset();
    }
    ReplyError(*exchange_, shard_.api, Error(StatusCode::kCancelled, "the request was aborted"));
    Leave();
  }

  // In the table already: what is done may end it.
  void Start() {
    if (sounds_.empty()) return StartItems();
    load_ = ReferenceLoad::Start(shard_, std::move(sounds_),
                                 [this](auto sounds) { OnShared(std::move(sounds)); });
  }

 private:
  void OnShared(const StatusOr<ReferenceLoad::Sounds>& sounds) {
    load_.reset();  // with the files that were decoded
    for (size_t i = 0; i < items_.size(); ++i) {
      if (!items_[i].shares) continue;
      if (sounds.ok()) {
        GiveSounds(*sounds, &*items_[i].request);
      } else {
        items_[i].status = OfItem(i, sounds.status());
      }
    }
    StartItems();
  }

  void StartItems() {
    for (size_t i = 0; i < items_.size(); ++i) StartItem(i);
    AnswerIfDone();
  }

  void StartItem(size_t index) {
    Item& item = items_[index];
    if (!item.status.ok()) {
      item.done = true;
      return;
    }
    if (item.sounds.empty()) return SpeakItem(index);
    item.load = ReferenceLoad::Start(shard_, std::move(item.sounds),
                                     [this, index](StatusOr<ReferenceLoad::Sounds> sounds) {
                                       items_[index].load.reset();
                                       if (!sounds.ok()) return Finish(index, sounds.status());
                                       GiveSounds(*sounds, &*items_[index].request);
                                       SpeakItem(index);
                                       AnswerIfDone();
                                     });
  }

  void SpeakItem(size_t index) {
    Item& item = items_[index];
    item.request->id = fmt::format("{}-{}", rid, index);
    auto feed =
        PipelineFeed::Start(*shard_.api.pipeline, *std::move(item.request), shard_.shard,
                            {[this, index](Part part) { OnPart(index, std::move(part)); },
                             [this, index](const Status& status) { OnDone(index, status); }});
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
    const std::string base64 = ToBase64(item->audio);
    std::string().swap(item->audio);
    w->Key("status").String("success").Key("audio_data").String(base64);
    w->Key("format").String(media::AudioFormatName(item->format));
    w->Key("media_type").String(media::MediaType(item->format));
    w->Key("finish_reason").String(item->finish_reason);
  }

  std::vector<Item> items_;
  std::vector<WantedSound> sounds_;
  std::unique_ptr<ReferenceLoad> load_;
  size_t bytes_ = 0;
};

// Which voices the items imitate that bring none themselves.
struct SharedVoice {
  Status status;  // what is wrong with them
  pipeline::Request request;
  std::vector<WantedSound> sounds;
};

// Takes the fields out of the batch.
SharedVoice TakeSharedVoice(Json* root, const pipeline::Pipeline& pipeline) {
  Json given(JsonObject{});
  for (const std::string_view name : kReferenceFields) {
    Json value = TakeMember(name, root);
    if (!value.is_null()) given.Set(name, std::move(value));
  }
  SharedVoice shared;
  shared.request.task = pipeline::Task::kSpeech;
  shared.status = ReadVoiceFields(pipeline, given, &shared.request, &shared.sounds);
  return shared;
}

bool BringsReferences(const Json& item) {
  return std::any_of(std::begin(kReferenceFields), std::end(kReferenceFields),
                     [&item](std::string_view name) { return item.Find(name) != nullptr; });
}

// Gives an item the references of the batch.
Status ShareVoice(const SharedVoice& shared, Item* item) {
  PORTICO_RETURN_IF_ERROR(shared.status);
  if (shared.request.references.empty()) return OkStatus();
  pipeline::Request& request = *item->request;
  if (!request.references.empty()) {
    return InvalidArgument(
        shared.request.references.front().field,
        fmt::format("the voice `{}` is an uploaded one, and is imitated", request.speech.voice));
  }
  request.references = shared.request.references;
  item->shares = true;
  return OkStatus();
}

// One item with the batch's fields where it has none of its own.
Item ReadItem(size_t index, const Json& given, const Json& defaults, const SharedVoice& shared,
              ShardContext& shard) {
  Item item;
  if (!given.is_object()) {
    item.status = InvalidArgument(fmt::format("items.{}", index), "an item must be an object");
    return item;
  }
  Json merged = defaults;
  for (const auto& [name, value] : given.as_object()) {
    if (name == "stream" || name == "stream_format") {
      item.status = InvalidArgument(fmt::format("items.{}.{}", index, name),
                                    fmt::format("{} is not a field of an item", name));
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
  item.sounds = std::move(speech->sounds);
  if (BringsReferences(given)) return item;
  if (const Status voice = ShareVoice(shared, &item); !voice.ok()) {
    item.status = OfItem(index, voice);
  }
  return item;
}

StatusOr<Batch> ReadBatch(const std::string& body, ShardContext& shard) {
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
  SharedVoice shared = TakeSharedVoice(&*root, *shard.api.pipeline);
  Batch batch;
  size_t own = 0;
  for (size_t i = 0; i < items.as_array().size(); ++i) {
    batch.items.push_back(ReadItem(i, items.as_array()[i], *root, shared, shard));
    own += batch.items.back().sounds.size();
    if (own > kMostOwnReferences) {
      return InvalidArgument(
          "items", fmt::format("the items of a batch have at most {} references of their own; "
                               "the batch's own are for all items",
                               kMostOwnReferences));
    }
  }
  const bool used = std::any_of(batch.items.begin(), batch.items.end(),
                                [](const Item& item) { return item.shares; });
  if (used) batch.sounds = std::move(shared.sounds);
  return batch;
}

}  // namespace

void HandleSpeechBatch(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  const auto pipeline = PipelineFor(shard.api, pipeline::Task::kSpeech);
  if (!pipeline.ok()) return ReplyError(*exchange, shard.api, pipeline.status());
  auto batch = ReadBatch(exchange->request.body, shard);
  if (!batch.ok()) return ReplyError(*exchange, shard.api, batch.status());
  std::string().swap(exchange->request.body);
  auto call = std::make_unique<BatchCall>(std::move(exchange), shard, *std::move(batch));
  BatchCall& running = *call;
  shard.calls.Add(std::move(call));
  running.Start();
}

}  // namespace portico::api::openai
