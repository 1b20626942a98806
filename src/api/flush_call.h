// A flush of the caches that waits for running requests to end, as long as its client allows (SGLang's `timeout`).
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "api/call.h"
#include "api/context.h"
#include "base/clock.h"
#include "engine/control.h"
#include "message/sampling_ranges.h"
#include "service/control/each_engine.h"

namespace portico::api {

inline constexpr NumberRange kFlushTimeout{0, 3600, false, "a number of seconds from 0 to 3600"};

// Holds an exchange or a gRPC call until the caches of that model, or of all for "", are flushed, the time is over, or
// something else is wrong; then runs `answer(transport, shard, status)`. A client that leaves ends the attempts.
template <typename Transport, typename Answer>
class FlushCall final : public Call {
 public:
  static void Start(std::unique_ptr<Transport> transport, ShardContext& shard, std::string model,
                    Duration patience, Answer answer) {
    auto call = std::make_unique<FlushCall>(std::move(transport), shard, std::move(model), patience,
                                            std::move(answer));
    FlushCall* started = call.get();
    shard.calls.Add(std::move(call));
    started->Try();
  }

  FlushCall(std::unique_ptr<Transport> transport, ShardContext& shard, std::string model,
            Duration patience, Answer answer)
      : transport_(std::move(transport)),
        shard_(shard),
        model_(std::move(model)),
        until_(Clock::now() + patience),
        answer_(std::move(answer)) {
    transport_->set_on_closed([this](auto&&...) { shard_.calls.Remove(this); });
  }
  // It is no request of a model's.
  void Abort() override {}

 private:
  static constexpr Duration kPause = std::chrono::milliseconds(50);

  void Try() {
    auto done = [id = serial, &shard = shard_](Status status) {
      shard.shard.Post([id, &shard, status = std::move(status)] {
        Call* call = shard.calls.Find(id);
        if (call != nullptr) static_cast<FlushCall*>(call)->OnTried(status);
      });
    };
    ControlEngines(*shard_.api.models, model_, FlushCacheControl{}, Clock::now() + kControlPatience,
                   std::move(done));
  }

  void OnTried(const Status& status) {
    if (status.code() == StatusCode::kFailedPrecondition && Clock::now() < until_) {
      timer_ = shard_.shard.After(kPause, [this] { Try(); });
      return;
    }
    transport_->set_on_closed(nullptr);
    std::unique_ptr<Transport> transport = std::move(transport_);
    shard_.calls.Remove(this);
    answer_(std::move(transport), shard_, status);
  }

  std::unique_ptr<Transport> transport_;
  ShardContext& shard_;
  const std::string model_;
  const TimePoint until_;
  Answer answer_;
  std::unique_ptr<net::Shard::Timer> timer_;
};

}  // namespace portico::api
