// A run's calls to an upstream: they live on a shard, the run on the pipeline's threads.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pipeline/stage.h"
#include "service/upstream/http_roles.h"
#include "service/upstream/http_upstream.h"

namespace portico {

class HttpWork : public std::enable_shared_from_this<HttpWork> {
 public:
  // `options` outlives the run, whose Drop() comes before its end.
  HttpWork(const HttpStageOptions& options, std::shared_ptr<UpstreamPlace> place,
           std::shared_ptr<pipeline::StageOutput> output)
      : output_(std::move(output)),
        stage_(options.stage),
        url_(options.url),
        api_key_(options.api_key),
        place_(std::move(place)) {}
  virtual ~HttpWork() = default;

  // From any thread, while no other call runs.
  void Post(UpstreamRequest request) {
    busy_ = true;
    auto shared = std::make_shared<UpstreamRequest>(std::move(request));
    place_->shard.Post([self = shared_from_this(), shared] { self->Begin(std::move(*shared)); });
  }
  // From any thread: ends what runs, without a word.
  void Drop() {
    if (dropped_.exchange(true)) return;
    place_->shard.Post([self = shared_from_this()] { self->call_.reset(); });
  }
  // From any thread: the stages behind have room.
  void OnRoom() {
    if (!paused_.exchange(false)) return;
    place_->shard.Post([self = shared_from_this()] {
      if (self->call_ != nullptr) self->call_->Resume();
    });
  }
  bool busy() const { return busy_; }

 protected:
  // On the shard.
  virtual void OnHead(const net::ResponseHead& /*head*/) {}
  virtual void OnBytes(std::string_view bytes) = 0;
  virtual void OnCallEnd(Status status) = 0;

  void Begin(UpstreamRequest request) {
    if (dropped_) return;
    if (place_->client == nullptr) {
      place_->client = std::make_unique<net::Http1Client>(place_->shard, place_->target,
                                                          net::Http1ClientOptions{});
    }
    UpstreamEvents events;
    events.on_head = [this](const net::ResponseHead& head) { OnHead(head); };
    events.on_bytes = [this](std::string_view bytes) {
      OnBytes(bytes);
      WaitForRoom();
    };
    events.on_end = [this](Status status) {
      const auto self = shared_from_this();
      OnCallEnd(std::move(status));
    };
    call_ = std::make_unique<UpstreamCall>(stage_, std::move(events));
    call_->Start(*place_->client, url_, api_key_, std::move(request));
  }
  // Ends the run, and the call without a word.
  void FailCall(Status status) {
    call_->Drop();
    output_->End(std::move(status));
  }
  // The work of the call is done: the run may give the next.
  void Done() {
    busy_ = false;
    output_->Wake();
  }

  const std::shared_ptr<pipeline::StageOutput> output_;

 private:
  void WaitForRoom() {
    if (output_->HasRoom()) return;
    paused_ = true;
    call_->Pause();
    // Room that has come meanwhile was told to nobody.
    if (output_->HasRoom()) OnRoom();
  }

  const std::string stage_;
  const UpstreamUrl url_;
  const std::string api_key_;
  const std::shared_ptr<UpstreamPlace> place_;
  std::unique_ptr<UpstreamCall> call_;  // on the shard
  std::atomic<bool> busy_{false};
  std::atomic<bool> paused_{false};
  std::atomic<bool> dropped_{false};
};

// A run around such work.
template <typename Work>
class HttpRun : public pipeline::StageRun {
 public:
  explicit HttpRun(std::shared_ptr<Work> work) : work_(std::move(work)) {}
  ~HttpRun() override { work_->Drop(); }

  void Abort() override { work_->Drop(); }
  bool Accepts() const override { return !work_->busy(); }
  bool busy() const override { return work_->busy(); }
  void OnRoom() override { work_->OnRoom(); }

 protected:
  const std::shared_ptr<Work> work_;
};

}  // namespace portico
