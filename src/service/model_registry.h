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

// What clients call a server's model that know no name of it, as SGLang's and llama.cpp's do.
inline constexpr std::string_view kDefaultModelName = "default";

class ModelRegistry {
 public:
  // Before Publish() only. The first model is the default one.
  void Add(std::unique_ptr<ServingModel> model) { models_.push_back(std::move(model)); }
  // Requests may name any model: names that are not served mean the default one. Before Publish() only.
  void AcceptAnyName() { accepts_any_name_ = true; }
  // From now on the models can be found, from any thread.
  void Publish() { published_.store(true, std::memory_order_release); }
  bool ready() const { return published_.load(std::memory_order_acquire); }

  // The model of that name, or the default one for "", and for "default" unless a model is called so. UNAVAILABLE while
  // loading; NOT_FOUND (field "model", reason "model_not_found") for a name that is not served.
  StatusOr<const ServingModel*> Find(std::string_view name) const;
  // The same for a request of that model, which may name any where AcceptAnyName() says so. What operators and probes ask
  // is about the model that they name.
  StatusOr<const ServingModel*> FindForRequest(std::string_view name) const {
    return Find(MeansDefault(name) ? std::string_view() : name);
  }
  // Whether a request with this name leaves the model to the server.
  bool MeansDefault(std::string_view name) const;
  // Empty while loading.
  std::vector<const ServingModel*> models() const;

 private:
  const ServingModel* FindNamed(std::string_view name) const;

  std::vector<std::unique_ptr<ServingModel>> models_;
  bool accepts_any_name_ = false;
  std::atomic<bool> published_{false};
};

}  // namespace portico
