// The LoRA adapters that the scheduler has, and how many requests use each: one that is in use is not unloaded.
// Thread safe.
#pragma once

#include <map>
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
  struct Use {
    std::string name;
    std::string id;
  };

  // One that the scheduler has. A name that is known already gets the new id.
  void Add(const std::string& name, std::string id, std::string path);
  void Remove(std::string_view name);
  void Clear();
  bool Has(std::string_view name) const;
  std::vector<LoraAdapter> List() const;

  // Begins a use, by name or, where that is empty, by id; clients that were told names take them for ids.
  // INVALID_ARGUMENT (field "lora_path" or "lora_id"): there is
  // none, or it is being unloaded.
  StatusOr<Use> Take(std::string_view name, std::string_view id);
  void GiveBack(std::string_view name);

  // Begins to unload it: nothing can take it from now on. Gives its id. NOT_FOUND, or FAILED_PRECONDITION while requests
  // use it. Then Remove(), or KeepAfterAll() where the scheduler has refused.
  StatusOr<std::string> StartUnload(std::string_view name);
  void KeepAfterAll(std::string_view name);

 private:
  struct Adapter {
    std::string id;
    std::string path;
    int64_t users = 0;
    bool leaving = false;
  };

  mutable Mutex mutex_;
  std::map<std::string, Adapter, std::less<>> by_name_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace portico::sglang
