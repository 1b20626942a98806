// The models being served, by name. Filled while the server starts, then only read.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "service/serving_model.h"

namespace portico {

class ModelRegistry {
 public:
  // Before Publish() only. The first model is the default one.
  void Add(std::unique_ptr<ServingModel> model) { models_.push_back(std::move(model)); }
  // From now on the models can be found, from any thread.
  void Publish() { published_.store(true, std::memory_order_release); }
  bool ready() const { return published_.load(std::memory_order_acquire); }

  // The model of that name, or the default one for "". UNAVAILABLE while loading; NOT_FOUND (field "model",
  // reason "model_not_found") for a name that is not served.
  StatusOr<const ServingModel*> Find(std::string_view name) const;
  // Empty while loading.
  std::vector<const ServingModel*> models() const;

 private:
  std::vector<std::unique_ptr<ServingModel>> models_;
  std::atomic<bool> published_{false};
};

}  // namespace portico
