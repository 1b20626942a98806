#include "router/proxy/fan_out.h"

#include <algorithm>
#include <utility>

namespace portico::router {

void FanOut::Start(GatewayShard& shard, SmallRequest request, Done done) {
  std::shared_ptr<FanOut> self(new FanOut(shard, std::move(done)));
  self->set_ = shard.set();
  std::vector<Worker*> workers;
  for (const WorkerPtr& worker : self->set_->workers()) {
    const bool down =
        worker->health() == Health::kUnhealthy || worker->health() == Health::kStalled;
    const bool usable = worker->protocol() == Protocol::kHttp ||
                        (worker->protocol() == Protocol::kGrpc && request.to_token_workers &&
                         shard.gateway().tokens() != nullptr);
    const bool asked = std::any_of(workers.begin(), workers.end(), [&](const Worker* other) {
      return SameServer(other->spec(), worker->spec());
    });
    if (usable && !down && !asked) workers.push_back(worker.get());
  }
  if (workers.empty()) return self->done_({});
  self->open_ = workers.size();
  const std::string& common = shard.gateway().options().api_key;
  for (Worker* worker : workers) {
    const std::string own = worker->api_key();
    const std::string& key = own.empty() ? common : own;
    const size_t index = self->answers_.size();
    self->answers_.push_back({worker->id(), Error(StatusCode::kUnavailable, "")});
    SmallRequest one = request;
    if (!key.empty()) one.authorization = "Bearer " + key;
    auto take = [self, index](StatusOr<SmallAnswer> answer) {
      self->answers_[index].answer = std::move(answer);
      if (--self->open_ > 0) return;
      self->shard_.shard().AtEndOfTurn([self] {
        self->calls_.clear();
        self->done_(std::move(self->answers_));
      });
    };
    if (worker->protocol() == Protocol::kGrpc) {
      self->calls_.push_back(std::make_unique<SmallCall>(shard.shard(), *shard.gateway().tokens(),
                                                         *worker, std::move(one), std::move(take)));
    } else {
      self->calls_.push_back(std::make_unique<SmallCall>(shard.shard(), shard.clients().Of(*worker),
                                                         *worker, std::move(one), std::move(take)));
    }
  }
}

}  // namespace portico::router
