// The LoRA adapters that the scheduler has, and how many requests use each, as SGLang's own front end keeps them: those
// used least recently leave where there are more than --max-loaded-loras, and are loaded again when a request names
// them. One that is in use is not unloaded. Thread safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "base/status.h"
#include "engine/engine.h"

namespace portico::sglang {

class Adapters {
 public:
  struct Adapter {
    std::string name;
    std::string id;  // the scheduler's; of this load alone
    std::string path;
    bool pinned = false;  // never evicted
  };
  // What a request uses until GiveBack(id).
  struct Use {
    std::string name;
    std::string id;
    bool is_loading = false;      // IsReady() tells when it may be sent
    std::optional<Adapter> load;  // the caller loads it, and says EndLoad()
  };

  // 0: any number.
  void SetLimit(size_t most);
  // One that the scheduler has from its start.
  void Add(Adapter adapter);
  void Clear();
  // Those that are loaded.
  std::vector<LoraAdapter> List() const;

  // Begins a use, by name or, where that is empty, by id; clients that were told names take them for ids.
  // INVALID_ARGUMENT (field "lora_path" or "lora_id"): there is none.
  StatusOr<Use> Take(std::string_view name, std::string_view id);
  // True where StartEviction() may give one now.
  bool GiveBack(std::string_view id);
  // Of one in use: whether it is loaded, or is still being so. An error: it could not be.
  StatusOr<bool> IsReady(std::string_view id) const;

  // Begins to load it; then EndLoad(). INVALID_ARGUMENT (field "lora_name"): it is there already, or comes or goes.
  // FAILED_PRECONDITION: all that may be loaded are pinned.
  Status StartLoad(const Adapter& adapter);
  // `is_known`: an error means that no rank has it. Else only StartUnload() can follow.
  void EndLoad(std::string_view id, const Status& status, bool is_known);

  // Begins to unload it: nothing can take it from now on. Gives its id, empty where it had been evicted and is forgotten
  // now; else EndUnload(). NOT_FOUND, or FAILED_PRECONDITION while requests use it.
  StatusOr<std::string> StartUnload(std::string_view name);
  // The same of the one that was used least recently, where there are too many. One that is pinned or in use stays, and
  // so does the one used last: those that are in use make room for it when they are not.
  std::optional<Adapter> StartEviction();
  void EndUnload(std::string_view id, bool good);

 private:
  enum class State { kLoading, kReady, kFailed, kIncomplete, kLeaving };
  struct Entry {
    Adapter adapter;
    State state = State::kReady;
    State before = State::kReady;  // kLeaving: what it was
    int64_t users = 0;
    uint64_t used = 0;         // when, by tick_
    bool is_evicted = false;   // kLeaving: and is loaded again when it is named
    bool is_kept = false;      // SGLang has refused to unload it: it is not evicted
    bool is_implicit = false;  // kLoading: a request has named it
    Status error;              // kFailed
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  Entry* Find(std::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry& Insert(const Adapter& adapter, State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Its name is free again.
  void Unname(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  size_t most_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t tick_ ABSL_GUARDED_BY(mutex_) = 0;
  Entries entries_ ABSL_GUARDED_BY(mutex_);                                      // by id
  std::map<std::string, std::string, std::less<>> ids_ ABSL_GUARDED_BY(mutex_);  // by name
  std::map<std::string, Adapter, std::less<>> evicted_ ABSL_GUARDED_BY(mutex_);  // by name
};

// As long and as random as SGLang's own.
std::string NewAdapterId();

}  // namespace portico::sglang
