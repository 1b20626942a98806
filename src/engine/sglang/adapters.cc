#include "engine/sglang/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace portico::sglang {

void Adapters::Add(const std::string& name, std::string id, std::string path) {
  const MutexLock lock(&mutex_);
  Adapter& adapter = by_name_[name];
  adapter.id = std::move(id);
  adapter.path = std::move(path);
  adapter.leaving = false;
}

void Adapters::Remove(std::string_view name) {
  const MutexLock lock(&mutex_);
  const auto it = by_name_.find(name);
  if (it != by_name_.end()) by_name_.erase(it);
}

void Adapters::Clear() {
  const MutexLock lock(&mutex_);
  by_name_.clear();
}

bool Adapters::Has(std::string_view name) const {
  const MutexLock lock(&mutex_);
  return by_name_.contains(name);
}

std::vector<LoraAdapter> Adapters::List() const {
  const MutexLock lock(&mutex_);
  std::vector<LoraAdapter> list;
  for (const auto& [name, adapter] : by_name_) {
    if (!adapter.leaving) list.push_back({name, adapter.path});
  }
  return list;
}

StatusOr<Adapters::Use> Adapters::Take(std::string_view name, std::string_view id) {
  const MutexLock lock(&mutex_);
  auto it = by_name_.find(name.empty() ? id : name);
  if (it == by_name_.end() && name.empty()) {
    it = std::find_if(by_name_.begin(), by_name_.end(),
                      [&](const auto& each) { return each.second.id == id; });
  }
  if (it == by_name_.end() || it->second.leaving) {
    return InvalidArgument(name.empty() ? "lora_id" : "lora_path",
                           fmt::format("no adapter `{:.100}` is loaded", name.empty() ? id : name));
  }
  ++it->second.users;
  return Use{it->first, it->second.id};
}

void Adapters::GiveBack(std::string_view name) {
  const MutexLock lock(&mutex_);
  const auto it = by_name_.find(name);
  if (it != by_name_.end() && it->second.users > 0) --it->second.users;
}

StatusOr<std::string> Adapters::StartUnload(std::string_view name) {
  const MutexLock lock(&mutex_);
  const auto it = by_name_.find(name);
  if (it == by_name_.end() || it->second.leaving) {
    return Error(StatusCode::kNotFound, fmt::format("no adapter `{:.100}` is loaded", name),
                 "lora_name");
  }
  if (it->second.users > 0) {
    return Error(
        StatusCode::kFailedPrecondition,
        fmt::format("the adapter `{:.100}` is in use by {} requests", name, it->second.users),
        "lora_name");
  }
  it->second.leaving = true;
  return it->second.id;
}

void Adapters::KeepAfterAll(std::string_view name) {
  const MutexLock lock(&mutex_);
  const auto it = by_name_.find(name);
  if (it != by_name_.end()) it->second.leaving = false;
}

}  // namespace portico::sglang
