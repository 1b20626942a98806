// The workers that there are, as an immutable snapshot that a request takes once, and the registry
// that makes them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status.h"
#include "message/kv_events.h"
#include "router/policy/policy.h"
#include "router/worker.h"

namespace portico::router {

// Names that clients may use for a model, and what workers call it.
using ModelAliases = std::map<std::string, std::string, std::less<>>;

// The workers of a model and a role, and the policy that chooses among them.
struct WorkerGroup {
  std::string model;               // empty: the group of all workers
  std::shared_ptr<Policy> policy;  // null of a group without workers
  std::vector<Worker*> workers;    // in the order of their numbers; the set keeps them alive
};

// Immutable. Models that every worker serves, or none, share the group of all workers; a model that
// some serve has a group of its own, with those that do not say what they serve. Each role has groups
// of its own.
class WorkerSet {
 public:
  const std::vector<WorkerPtr>& workers() const { return workers_; }
  const WorkerGroup& all(Role role = Role::kRegular) const { return of(role).all; }
  // All groups of a role that have a policy: that of all workers, then those of models.
  std::vector<const WorkerGroup*> groups(Role role) const;
  // The group that serves `model`, or null if `strict` and none names it.
  const WorkerGroup* Find(std::string_view model, bool strict, Role role = Role::kRegular) const;
  // Whether it is the host of a worker; in lower case, IPv6 without brackets.
  bool HasHost(std::string_view host) const { return hosts_.contains(host); }
  // By id, or by URL as given; or null.
  WorkerPtr FindWorker(std::string_view id_or_url) const;
  // Whether requests must be searched for the model they name.
  bool has_groups() const;
  // Whether a policy of `role` reads prompts.
  bool wants_prompt(Role role) const {
    return all(role).policy != nullptr && all(role).policy->wants_prompt();
  }
  // Of all workers, sorted.
  std::vector<std::string> Models() const;
  const ModelAliases& aliases() const { return aliases_; }
  // What workers call the model of an alias; null: it is none.
  const std::string* ModelOf(std::string_view alias) const;

 private:
  friend class WorkerRegistry;
  struct RoleGroups {
    WorkerGroup all;
    std::map<std::string, WorkerGroup, std::less<>> groups;
  };
  const RoleGroups& of(Role role) const { return roles_[static_cast<size_t>(role)]; }

  std::vector<WorkerPtr> workers_;
  std::set<std::string, std::less<>> hosts_;
  ModelAliases aliases_;
  std::array<RoleGroups, std::size(kRoles)> roles_;
};

using WorkerSetPtr = std::shared_ptr<const WorkerSet>;

// Thread safe.
class WorkerRegistry {
 public:
  using PolicyMaker = std::function<std::shared_ptr<Policy>(Role role, const std::string& model)>;

  // `make` makes the policy of a group.
  explicit WorkerRegistry(PolicyMaker make);

  WorkerSetPtr set() const;
  // Rises with each change.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // ALREADY_EXISTS for a URL and rank that is there.
  StatusOr<WorkerPtr> Add(WorkerSpec spec, const BreakerOptions& breaker);
  // In one step. Of `specs` those that are there already, beside `gone`, are refused. `prepare`, if any, is given
  // each new worker before anybody else sees it; it asks nothing of this.
  struct Replaced {
    std::vector<WorkerPtr> added;
    std::vector<WorkerPtr> removed;
    std::vector<Status> refused;
  };
  using Prepare = std::function<void(Worker&)>;
  Replaced Replace(const std::vector<WorkerPtr>& gone, std::vector<WorkerSpec> specs,
                   const BreakerOptions& breaker, const Prepare& prepare = nullptr);
  // The worker that was removed, or null. Requests on it go on.
  WorkerPtr Remove(std::string_view id_or_url);
  // What a worker serves has become known or has changed.
  void SetModels(Worker& worker, std::vector<std::string> models);
  // The worker has restarted: tells the policies.
  void NoteLost(Worker& worker);
  // Events of a worker's cache, to the policies that want them; a null batch tells nothing.
  KvWish OnKvEvents(const Worker& worker, const KvEventBatch* batch, bool reset);
  // A worker tells nothing any more, until it begins anew.
  void OnKvEventsLost(const Worker& worker);
  // Whether any policy takes such events.
  bool WantsKvEvents() const;
  // New policies from `make`, for all groups.
  void ReplacePolicies(PolicyMaker make);
  // False if they are the same.
  bool SetAliases(ModelAliases aliases);
  void Tick(TimePoint now);

 private:
  // Makes and publishes a set of `workers`, and tells the policies what has changed.
  void Publish(std::vector<WorkerPtr> workers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillRole(Role role, const WorkerSet& former, WorkerSet* next)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fill(WorkerGroup* group, Role role, const std::string& model,
            const std::vector<Worker*>& workers) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  PolicyMaker make_ ABSL_GUARDED_BY(mutex_);
  ModelAliases aliases_ ABSL_GUARDED_BY(mutex_);
  // Of each group, by role and model.
  std::map<std::pair<Role, std::string>, std::shared_ptr<Policy>> policies_ ABSL_GUARDED_BY(mutex_);
  WorkerSetPtr set_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint64_t> version_{0};
};

// A shard's view of the registry: the set is taken anew only when it has changed.
class WorkerSetReader {
 public:
  explicit WorkerSetReader(const WorkerRegistry& registry) : registry_(registry) {}
  const WorkerSetPtr& Get() {
    const uint64_t version = registry_.version();
    if (set_ == nullptr || version != version_) {
      set_ = registry_.set();
      version_ = version;
    }
    return set_;
  }

 private:
  const WorkerRegistry& registry_;
  WorkerSetPtr set_;
  uint64_t version_ = 0;
};

}  // namespace portico::router
