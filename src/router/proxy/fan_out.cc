#include "router/proxy/fan_out.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace portico::router {
namespace {

// While a worker does it nothing else comes from its engine, and after a pause until it goes on.
bool HoldsEngineBack(std::string_view target) {
  return target.starts_with("/pause_generation") || target.find("weights") != target.npos;
}

void NoteOutcome(std::string_view target, const StatusOr<SmallAnswer>& answer, Worker& worker) {
  if (HoldsEngineBack(target)) worker.EndControl();
  if (!answer.ok() || answer->status != 200) return;
  if (target.starts_with("/pause_generation")) worker.SetPaused(true);
  if (target.starts_with("/continue_generation")) worker.SetPaused(false);
}

}  // namespace

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
    if (HoldsEngineBack(one.target)) worker->BeginControl();
    auto take = [self, index, worker, target = one.target](StatusOr<SmallAnswer> answer) {
      NoteOutcome(target, answer, *worker);
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
