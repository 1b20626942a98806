// Workers of no address, for tests of policies.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "router/policy/policy.h"
#include "router/worker.h"

namespace portico::router {

class TestFleet {
 public:
  explicit TestFleet(size_t count) {
    for (size_t i = 0; i < count; ++i) Add();
  }
  void Add() {
    WorkerSpec spec;
    spec.host = "worker" + std::to_string(all_.size());
    spec.port = 30000;
    spec.url = "http://" + spec.host + ":30000";
    all_.push_back(std::make_shared<Worker>(std::move(spec)));
    list_.push_back(all_.back().get());
    prefills_.emplace_back();
  }
  Worker& operator[](size_t i) { return *all_[i]; }
  std::span<Worker* const> all() const { return list_; }
  // Without worker i.
  std::vector<Worker*> Without(size_t i) const {
    std::vector<Worker*> some = list_;
    some.erase(some.begin() + static_cast<ptrdiff_t>(i));
    return some;
  }
  void Load(size_t i, int requests, int64_t tokens = 0) {
    for (int n = 0; n < requests; ++n) all_[i]->Start(0);
    all_[i]->FinishPrefill(-tokens);
  }
  // Chooses and starts; returns the worker's place.
  size_t Send(Policy& policy, const RoutingKey& key) {
    const size_t i = policy.Choose(all(), key).index;
    prefills_[i].push_back(policy.OnStart(*all_[i], key));
    all_[i]->Start(prefills_[i].back());
    return i;
  }
  // The oldest of what was sent to worker i.
  void End(Policy& policy, size_t i) {
    all_[i]->FinishPrefill(prefills_[i].front());
    prefills_[i].pop_front();
    all_[i]->Finish();
    policy.OnFinish(*all_[i], {});
  }

 private:
  std::vector<std::shared_ptr<Worker>> all_;
  std::vector<Worker*> list_;
  std::vector<std::deque<int64_t>> prefills_;  // of what was sent to each and has not ended
};

inline RoutingKey TextKey(std::string_view text) {
  return {.text = text, .prompt_tokens = static_cast<int64_t>(text.size() / 4 + 1)};
}

}  // namespace portico::router
