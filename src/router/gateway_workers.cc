// Which workers the gateway has: added, removed, replaced by a reload, and split into their server's ranks.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/log.h"
#include "router/gateway.h"

namespace portico::router {
namespace {

// What a worker was made of, as far as it is configured.
bool Same(const WorkerSpec& a, const WorkerSpec& b) {
  return ServerUrl(a) == ServerUrl(b) && a.api_key == b.api_key && a.models == b.models &&
         a.labels == b.labels && a.role == b.role && a.bootstrap_port == b.bootstrap_port &&
         a.max_requests == b.max_requests && a.kv_events == b.kv_events;
}

}  // namespace

StatusOr<WorkerPtr> Gateway::AddWorker(WorkerSpec spec) {
  PORTICO_RETURN_IF_ERROR(CheckRole(spec));
  PORTICO_ASSIGN_OR_RETURN(WorkerPtr worker, workers_.Add(std::move(spec), options_.breaker));
  NoteAdded(*worker);
  return worker;
}

bool Gateway::RemoveWorker(std::string_view id_or_url) {
  bool found = false;
  const WorkerSetPtr set = workers_.set();
  for (const WorkerPtr& worker : set->workers()) {
    if (worker->id() != id_or_url && worker->url() != id_or_url &&
        ServerUrl(worker->spec()) != id_or_url) {
      continue;
    }
    const WorkerPtr gone = workers_.Remove(worker->id());
    if (gone == nullptr) continue;
    found = true;
    LogInfo("worker {} {} removed", gone->id(), gone->url());
  }
  return found;
}

std::pair<int, int> Gateway::ReplaceWorkers(const std::vector<WorkerSpec>& wanted, Source source) {
  const WorkerSetPtr set = workers_.set();
  std::vector<WorkerPtr> gone;
  for (const WorkerPtr& worker : set->workers()) {
    if (worker->spec().source != source) continue;
    const bool stays = std::any_of(wanted.begin(), wanted.end(), [&](const WorkerSpec& spec) {
      return Same(spec, worker->spec());
    });
    if (!stays) gone.push_back(worker);
  }
  const auto refuse = [](const Status& why) {
    LogWarning("a worker is not added: {}", MessageOf(why));
  };
  std::vector<WorkerSpec> fresh;
  for (const WorkerSpec& spec : wanted) {
    const bool there =
        std::any_of(set->workers().begin(), set->workers().end(), [&](const WorkerPtr& worker) {
          return worker->spec().source == source && Same(spec, worker->spec());
        });
    if (there) continue;
    if (const Status role = CheckRole(spec); !role.ok()) {
      refuse(role);
      continue;
    }
    fresh.push_back(spec);
    fresh.back().source = source;
  }
  const auto replaced = workers_.Replace(gone, std::move(fresh), options_.breaker);
  for (const WorkerPtr& worker : replaced.removed) {
    LogInfo("worker {} {} removed", worker->id(), worker->url());
  }
  for (const WorkerPtr& worker : replaced.added) NoteAdded(*worker);
  for (const Status& why : replaced.refused) refuse(why);
  return {static_cast<int>(replaced.added.size()), static_cast<int>(replaced.removed.size())};
}

void Gateway::SplitRanks(const Worker& worker, int size) {
  const WorkerSpec spec = worker.spec();
  if (spec.dp_size == size) return;
  if (workers_.set()->FindWorker(worker.id()) == nullptr) return;  // removed meanwhile
  const std::string url(ServerUrl(spec));
  LogInfo("worker {} {} has {}", worker.id(), url, Counted(size, "data-parallel rank"));
  std::vector<WorkerPtr> before;
  const WorkerSetPtr set = workers_.set();
  for (const WorkerPtr& one : set->workers()) {
    if (ServerUrl(one->spec()) == url) before.push_back(one);
  }
  std::vector<WorkerSpec> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(spec);
    ranks.back().url = fmt::format("{}@{}", url, rank);
    ranks.back().dp_rank = rank;
    ranks.back().dp_size = size;
  }
  const auto like_before = [&](Worker& rank) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const WorkerPtr& one) {
      return one->spec().dp_rank == rank.spec().dp_rank;
    });
    rank.ChangeLike(same == before.end() ? worker : **same);
  };
  const auto replaced = workers_.Replace(before, std::move(ranks), options_.breaker, like_before);
  for (const WorkerPtr& gone : replaced.removed) {
    LogInfo("worker {} {} removed", gone->id(), gone->url());
  }
  for (const WorkerPtr& added : replaced.added) NoteAdded(*added);
  for (const Status& why : replaced.refused) LogWarning("{}", MessageOf(why));
}

}  // namespace portico::router
