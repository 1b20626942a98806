#include "api/openai/audio/chat/chat_media.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "api/exchange_call.h"
#include "api/reply.h"
#include "service/upstream/media_fetch.h"

namespace portico::api::openai {
namespace {

// One after the other.
class FetchedChat final : public ExchangeCall {
 public:
  FetchedChat(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, AudioChat chat,
              MediaThen then)
      : ExchangeCall(std::move(exchange), shard),
        rules_(MediaRulesOf(*shard.api.pipeline)),
        chat_(std::move(chat)),
        then_(then) {
    rid = chat_.request.id;
  }

  void Fetch() {
    if (at_ == chat_.media.size()) {
      std::unique_ptr<net::Exchange> exchange = TakeExchange();
      Leave();
      chat_.media.clear();
      return then_(std::move(exchange), shard_, std::move(chat_));
    }
    // Together no more than a few large ones.
    rules_.max_bytes = std::min(rules_.max_bytes, kMaxMedia - total_);
    fetch_ = MediaFetch::Start(shard_.shard, *shard_.api.pool, rules_, chat_.media[at_].url,
                               [this](auto bytes) { OnFetched(std::move(bytes)); });
  }

  void Abort() override {
    fetch_.reset();
    exchange_->NoteAbort();
    Refuse(Error(StatusCode::kCancelled, "the request was aborted"));
  }

 private:
  static constexpr size_t kMaxMedia = size_t{32} << 20;

  void OnFetched(StatusOr<MediaFetch::Bytes> bytes) {
    const WantedMedia& wanted = chat_.media[at_++];
    if (!bytes.ok()) {
      return Refuse(Error(bytes.status().code(),
                          fmt::format("{} {}", wanted.place, MessageOf(bytes.status())),
                          wanted.field));
    }
    total_ += (*bytes)->size();
    std::get<pipeline::FilePart>(chat_.request.inputs[wanted.input]).bytes = *std::move(bytes);
    Fetch();
  }
  void Refuse(const Status& status) {
    ReplyError(*exchange_, shard_.api, status);
    Leave();
  }

  MediaRules rules_;
  AudioChat chat_;
  const MediaThen then_;
  size_t at_ = 0;     // of chat_.media
  size_t total_ = 0;  // bytes
  std::unique_ptr<MediaFetch> fetch_;
};

}  // namespace

void FetchMedia(std::unique_ptr<net::Exchange> exchange, ShardContext& shard, AudioChat chat,
                MediaThen then) {
  auto call = std::make_unique<FetchedChat>(std::move(exchange), shard, std::move(chat), then);
  FetchedChat* fetching = call.get();
  shard.calls.Add(std::move(call));
  fetching->Fetch();
}

}  // namespace portico::api::openai
