#include "api/grpc/engine_state.h"

#include <chrono>

#include "base/mutex.h"
#include "service/model_registry.h"

namespace portico::api::rpc {
namespace {

constexpr std::chrono::milliseconds kTick{50};

uint64_t UnixNanoseconds() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

size_t IndexOf(const ShardContext& shard) { return static_cast<size_t>(shard.shard.index()); }

}  // namespace

EngineState::EngineState(ApiContext& context)
    : api_(context), instance_id_(UnixNanoseconds()), places_(context.shards.size()) {}

EngineState::Snapshot EngineState::Look() const {
  Snapshot now;
  now.draining = api_.draining;
  bool any_lives = false;
  for (const ServingModel* model : api_.models->models()) {
    const EngineLoad load = model->engine->load();
    any_lives = any_lives || load.healthy;
    now.paused = now.paused || load.paused;
  }
  now.healthy = any_lives && !now.draining && !api_.failed;
  return now;
}

EngineState::Snapshot EngineState::Refresh() {
  const MutexLock lock(&mutex_);
  Snapshot now = Look();
  if (last_.revision > 0 && now.healthy == last_.healthy && now.paused == last_.paused &&
      now.draining == last_.draining) {
    return last_;
  }
  now.revision = last_.revision + 1;
  last_ = now;
  // Posted under the lock, so that every shard sees the changes in their order.
  for (size_t i = 0; i < places_.size(); ++i) {
    api_.shards[i]->shard.Post([this, i, now] { Tell(i, now); });
  }
  return now;
}

EngineState::Snapshot EngineState::Watch(ShardContext& shard, Watcher* watcher) {
  const Snapshot now = Refresh();
  watcher->seen_ = now.revision;
  Place& place = places_[IndexOf(shard)];
  place.watchers.insert(watcher);
  if (!place.timer) Tick(shard);
  return now;
}

void EngineState::Unwatch(ShardContext& shard, Watcher* watcher) {
  places_[IndexOf(shard)].watchers.erase(watcher);
}

void EngineState::Tick(ShardContext& shard) {
  Place& place = places_[IndexOf(shard)];
  place.timer = shard.shard.After(kTick, [this, &shard] {
    Place& here = places_[IndexOf(shard)];
    if (here.watchers.empty()) {
      here.timer.reset();
      return;
    }
    Refresh();
    Tick(shard);
  });
}

void EngineState::Tell(size_t shard, const Snapshot& snapshot) {
  // A watcher may leave while it is told.
  const std::vector<Watcher*> told(places_[shard].watchers.begin(), places_[shard].watchers.end());
  for (Watcher* watcher : told) {
    if (!places_[shard].watchers.contains(watcher) || watcher->seen_ >= snapshot.revision) continue;
    watcher->seen_ = snapshot.revision;
    watcher->OnState(snapshot);
  }
}

}  // namespace portico::api::rpc
