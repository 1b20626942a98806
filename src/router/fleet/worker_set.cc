#include "router/fleet/worker_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/ascii.h"

namespace portico::router {
namespace {

bool Contains(const std::vector<Worker*>& workers, const Worker* worker) {
  return std::find(workers.begin(), workers.end(), worker) != workers.end();
}

Status CheckNew(const std::vector<WorkerPtr>& workers, const WorkerSpec& spec) {
  for (const WorkerPtr& worker : workers) {
    const WorkerSpec& there = worker->spec();
    const bool same_protocol = there.protocol == spec.protocol ||
                               there.protocol == Protocol::kUnknown ||
                               spec.protocol == Protocol::kUnknown;
    if (same_protocol && there.host == spec.host && there.port == spec.port &&
        there.path_prefix == spec.path_prefix &&
        (there.dp_rank == spec.dp_rank || there.dp_rank < 0 || spec.dp_rank < 0)) {
      return Error(StatusCode::kAlreadyExists,
                   fmt::format("worker {} exists already ({})", spec.url, worker->id()));
    }
    if (!MakePairs(there, spec)) {
      return InvalidArgument(
          "url", fmt::format("worker {}: prefill and decode workers are either all of HTTP or all "
                             "of gRPC, and there are {} ones",
                             spec.url, there.protocol == Protocol::kHttp ? "HTTP" : "gRPC"));
    }
  }
  return OkStatus();
}

}  // namespace

const WorkerGroup* WorkerSet::Find(std::string_view model, bool strict, Role role) const {
  const auto& [all, groups] = of(role);
  if (model.empty()) return &all;
  const auto found = groups.find(model);
  if (found != groups.end()) return &found->second;
  if (!strict) return &all;
  for (const Worker* worker : all.workers) {
    const std::vector<std::string> models = worker->models();
    if (models.empty() || std::find(models.begin(), models.end(), model) != models.end()) {
      return &all;
    }
  }
  return nullptr;
}

std::vector<const WorkerGroup*> WorkerSet::groups(Role role) const {
  const auto& [all, models] = of(role);
  std::vector<const WorkerGroup*> every;
  if (all.policy != nullptr) every.push_back(&all);
  for (const auto& [model, group] : models) every.push_back(&group);
  return every;
}

bool WorkerSet::has_groups() const {
  return std::any_of(roles_.begin(), roles_.end(),
                     [](const RoleGroups& role) { return !role.groups.empty(); });
}

WorkerPtr WorkerSet::FindWorker(std::string_view id_or_url) const {
  for (const WorkerPtr& worker : workers_) {
    if (worker->id() == id_or_url || worker->url() == id_or_url) return worker;
  }
  return nullptr;
}

std::vector<std::string> WorkerSet::Models() const {
  std::set<std::string> models;
  for (const WorkerPtr& worker : workers_) {
    for (std::string& model : worker->models()) models.insert(std::move(model));
  }
  return {models.begin(), models.end()};
}

const std::string* WorkerSet::ModelOf(std::string_view alias) const {
  const auto found = aliases_.find(alias);
  return found == aliases_.end() ? nullptr : &found->second;
}

WorkerRegistry::WorkerRegistry(PolicyMaker make) : make_(std::move(make)) {
  const MutexLock lock(&mutex_);
  Publish({});
}

WorkerSetPtr WorkerRegistry::set() const {
  const MutexLock lock(&mutex_);
  return set_;
}

StatusOr<WorkerPtr> WorkerRegistry::Add(WorkerSpec spec, const BreakerOptions& breaker) {
  Replaced replaced = Replace({}, {std::move(spec)}, breaker);
  if (!replaced.refused.empty()) return replaced.refused.front();
  return replaced.added.front();
}

WorkerRegistry::Replaced WorkerRegistry::Replace(const std::vector<WorkerPtr>& gone,
                                                 std::vector<WorkerSpec> specs,
                                                 const BreakerOptions& breaker,
                                                 const Prepare& prepare) {
  Replaced replaced;
  const MutexLock lock(&mutex_);
  std::vector<WorkerPtr> workers = set_->workers();
  for (const WorkerPtr& worker : gone) {
    if (std::erase(workers, worker) > 0) replaced.removed.push_back(worker);
  }
  for (WorkerSpec& spec : specs) {
    if (const Status is_new = CheckNew(workers, spec); !is_new.ok()) {
      replaced.refused.push_back(is_new);
      continue;
    }
    workers.push_back(std::make_shared<Worker>(std::move(spec)));
    workers.back()->breaker().Configure(breaker);
    if (prepare) prepare(*workers.back());
    replaced.added.push_back(workers.back());
  }
  if (!replaced.added.empty() || !replaced.removed.empty()) Publish(std::move(workers));
  // Sets from before may still be in use: they choose it no more.
  for (const WorkerPtr& worker : replaced.removed) worker->SetDraining(true);
  return replaced;
}

WorkerPtr WorkerRegistry::Remove(std::string_view id_or_url) {
  const MutexLock lock(&mutex_);
  const WorkerPtr gone = set_->FindWorker(id_or_url);
  if (gone == nullptr) return nullptr;
  std::vector<WorkerPtr> workers = set_->workers();
  std::erase(workers, gone);
  Publish(std::move(workers));
  gone->SetDraining(true);  // likewise
  return gone;
}

void WorkerRegistry::SetModels(Worker& worker, std::vector<std::string> models) {
  const MutexLock lock(&mutex_);
  if (worker.models() == models) return;
  worker.SetModels(std::move(models));
  Publish(set_->workers());
}

void WorkerRegistry::NoteLost(Worker& worker) {
  const MutexLock lock(&mutex_);
  for (const auto& [group, policy] : policies_) policy->OnWorkerLost(worker);
}

KvWish WorkerRegistry::OnKvEvents(const Worker& worker, const KvEventBatch* batch, bool reset) {
  const KvEventBatch nothing;
  absl::InlinedVector<std::shared_ptr<Policy>, 4> policies;
  {
    const MutexLock lock(&mutex_);
    for (const auto& [group, policy] : policies_) {
      if (policy->wants_kv_events()) policies.push_back(policy);
    }
  }
  if (policies.empty()) return KvWish::kNothing;
  bool understood = true;
  for (const auto& policy : policies) {
    understood &= policy->OnKvEvents(worker, batch == nullptr ? nothing : *batch, reset);
  }
  return understood ? KvWish::kMore : KvWish::kState;
}

void WorkerRegistry::OnKvEventsLost(const Worker& worker) {
  const MutexLock lock(&mutex_);
  for (const auto& [group, policy] : policies_) policy->OnKvEventsLost(worker);
}

bool WorkerRegistry::WantsKvEvents() const {
  const MutexLock lock(&mutex_);
  return std::any_of(policies_.begin(), policies_.end(),
                     [](const auto& entry) { return entry.second->wants_kv_events(); });
}

void WorkerRegistry::ReplacePolicies(PolicyMaker make) {
  const MutexLock lock(&mutex_);
  make_ = std::move(make);
  policies_.clear();
  std::vector<WorkerPtr> workers = set_->workers();
  set_ = std::make_shared<WorkerSet>();
  Publish(std::move(workers));
}

bool WorkerRegistry::SetAliases(ModelAliases aliases) {
  const MutexLock lock(&mutex_);
  if (aliases == aliases_) return false;
  aliases_ = std::move(aliases);
  Publish(set_->workers());
  return true;
}

void WorkerRegistry::Tick(TimePoint now) {
  std::vector<std::shared_ptr<Policy>> policies;
  {
    const MutexLock lock(&mutex_);
    for (const auto& [group, policy] : policies_) policies.push_back(policy);
  }
  for (const auto& policy : policies) policy->OnTick(now);
}

void WorkerRegistry::Fill(WorkerGroup* group, Role role, const std::string& model,
                          const std::vector<Worker*>& workers) {
  std::shared_ptr<Policy>& policy = policies_[{role, model}];
  if (policy == nullptr) policy = make_(role, model);
  group->model = model;
  group->policy = policy;
  group->workers = workers;
}

void WorkerRegistry::FillRole(Role role, const WorkerSet& former, WorkerSet* next) {
  WorkerSet::RoleGroups& made = next->roles_[static_cast<size_t>(role)];
  std::vector<Worker*> every;
  std::map<std::string, std::vector<Worker*>> serving;
  std::vector<Worker*> silent;
  for (const WorkerPtr& worker : next->workers_) {
    if (worker->spec().role != role) continue;
    every.push_back(worker.get());
    const std::vector<std::string> models = worker->models();
    if (models.empty()) silent.push_back(worker.get());
    for (const std::string& model : models) serving[model].push_back(worker.get());
  }
  // Most gateways have workers of one role; policies take memory.
  if (role == Role::kRegular || !every.empty()) Fill(&made.all, role, "", every);
  for (auto& [model, some] : serving) {
    some.insert(some.end(), silent.begin(), silent.end());
    std::sort(some.begin(), some.end(),
              [](const Worker* a, const Worker* b) { return a->number() < b->number(); });
    some.erase(std::unique(some.begin(), some.end()), some.end());
    if (some.size() < every.size()) Fill(&made.groups[model], role, model, some);
  }
  const auto tell = [&](const WorkerGroup* before, const WorkerGroup& now) {
    for (Worker* worker : now.workers) {
      if (before == nullptr || !Contains(before->workers, worker)) {
        now.policy->OnWorkerAdded(*worker);
      }
    }
    if (before == nullptr || now.policy == nullptr) return;
    for (Worker* worker : before->workers) {
      if (!Contains(now.workers, worker)) now.policy->OnWorkerRemoved(*worker);
    }
  };
  const WorkerSet::RoleGroups& there = former.of(role);
  tell(&there.all, made.all);
  for (const auto& [model, group] : made.groups) {
    const auto before = there.groups.find(model);
    tell(before == there.groups.end() ? nullptr : &before->second, group);
  }
  std::erase_if(policies_, [&](const auto& entry) {
    const auto& [of, model] = entry.first;
    if (of != role) return false;
    return model.empty() ? made.all.policy == nullptr : !made.groups.contains(model);
  });
}

void WorkerRegistry::Publish(std::vector<WorkerPtr> workers) {
  const WorkerSetPtr former = set_ == nullptr ? std::make_shared<const WorkerSet>() : set_;
  auto next = std::make_shared<WorkerSet>();
  next->workers_ = std::move(workers);
  for (const WorkerPtr& worker : next->workers_) {
    next->hosts_.insert(absl::AsciiStrToLower(worker->spec().host));
  }
  next->aliases_ = aliases_;
  for (const Role role : kRoles) FillRole(role, *former, next.get());
  set_ = std::move(next);
  version_.fetch_add(1, std::memory_order_release);
}

}  // namespace portico::router
