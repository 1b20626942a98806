#include "engine/sglang/adapters.h"

#include <fmt/format.h>

#include <random>
#include <utility>

namespace portico::sglang {
namespace {

// Names that are remembered after their adapters have left. Operators make them.
constexpr size_t kMaxEvicted = 10'000;
// SGLang's, of one that came as tensors.
constexpr std::string_view kTensorPath = "__tensor__";

}  // namespace

std::string NewAdapterId() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

void Adapters::SetLimit(size_t most) {
  const MutexLock lock(&mutex_);
  most_ = most;
}

Adapters::Entry* Adapters::Find(std::string_view name) {
  const auto id = ids_.find(name);
  if (id == ids_.end()) return nullptr;
  const auto entry = entries_.find(id->second);
  return entry == entries_.end() ? nullptr : &entry->second;
}

Adapters::Entry& Adapters::Insert(const Adapter& adapter, State state) {
  evicted_.erase(adapter.name);
  ids_[adapter.name] = adapter.id;
  Entry& entry = entries_[adapter.id];
  entry = Entry{};
  entry.adapter = adapter;
  entry.state = state;
  entry.used = ++tick_;
  return entry;
}

void Adapters::Unname(const Entry& entry) {
  const auto id = ids_.find(entry.adapter.name);
  if (id != ids_.end() && id->second == entry.adapter.id) ids_.erase(id);
}

void Adapters::Add(Adapter adapter) {
  const MutexLock lock(&mutex_);
  Insert(adapter, State::kReady);
}

void Adapters::Clear() {
  const MutexLock lock(&mutex_);
  entries_.clear();
  ids_.clear();
  evicted_.clear();
}

std::vector<LoraAdapter> Adapters::List() const {
  const MutexLock lock(&mutex_);
  std::vector<LoraAdapter> list;
  for (const auto& [name, id] : ids_) {
    const auto entry = entries_.find(id);
    if (entry == entries_.end() || entry->second.state != State::kReady) continue;
    list.push_back({name, entry->second.adapter.path});
  }
  return list;
}

StatusOr<Adapters::Use> Adapters::Take(std::string_view name, std::string_view id) {
  const MutexLock lock(&mutex_);
  const std::string_view asked = name.empty() ? id : name;
  Entry* entry = Find(asked);
  if (entry == nullptr && name.empty()) {
    const auto found = entries_.find(id);
    if (found != entries_.end() && Find(found->second.adapter.name) == &found->second) {
      entry = &found->second;
    }
  }
  Use use;
  if (entry == nullptr) {
    const auto evicted = evicted_.find(asked);
    if (evicted != evicted_.end() && evicted->second.path != kTensorPath) {
      use.load = evicted->second;
      use.load->id = NewAdapterId();
      entry = &Insert(*use.load, State::kLoading);
      entry->is_implicit = true;
    } else if (evicted != evicted_.end()) {
      return InvalidArgument(name.empty() ? "lora_id" : "lora_path",
                             fmt::format("the adapter `{:.100}` was evicted, and its tensors must "
                                         "be loaded again",
                                         asked));
    }
  }
  const bool usable =
      entry != nullptr && (entry->state == State::kReady || entry->state == State::kLoading);
  if (!usable) {
    return InvalidArgument(name.empty() ? "lora_id" : "lora_path",
                           fmt::format("no adapter `{:.100}` is loaded", asked));
  }
  ++entry->users;
  entry->used = ++tick_;
  use.name = entry->adapter.name;
  use.id = entry->adapter.id;
  use.is_loading = entry->state == State::kLoading;
  return use;
}

bool Adapters::GiveBack(std::string_view id) {
  const MutexLock lock(&mutex_);
  const auto it = entries_.find(id);
  if (it == entries_.end() || it->second.users == 0 || --it->second.users > 0) return false;
  if (it->second.state == State::kFailed) {
    entries_.erase(it);
    return false;
  }
  return most_ > 0 && ids_.size() > most_;
}

StatusOr<bool> Adapters::IsReady(std::string_view id) const {
  const MutexLock lock(&mutex_);
  const auto it = entries_.find(id);
  if (it == entries_.end()) {
    return Error(StatusCode::kUnavailable, "the engine has lost its adapters");
  }
  if (it->second.state == State::kReady) return true;
  if (it->second.state == State::kLoading) return false;
  return Error(StatusCode::kInvalidArgument,
               fmt::format("the adapter `{:.100}` cannot be loaded: {}", it->second.adapter.name,
                           MessageOf(it->second.error)),
               "lora_path");
}

Status Adapters::StartLoad(const Adapter& adapter) {
  const MutexLock lock(&mutex_);
  if (const Entry* entry = Find(adapter.name); entry != nullptr) {
    std::string_view why = "is loaded already";
    if (entry->state == State::kLoading) why = "is being loaded";
    if (entry->state == State::kLeaving) why = "is being unloaded";
    if (entry->state == State::kIncomplete) {
      why = "was not loaded completely; unload it before it is loaded again";
    }
    return InvalidArgument("lora_name", fmt::format("the adapter `{:.100}` {}", adapter.name, why));
  }
  size_t pinned = 0;
  for (const auto& [name, id] : ids_) {
    const auto entry = entries_.find(id);
    pinned += entry != entries_.end() && entry->second.adapter.pinned;
  }
  if (most_ > 0 && pinned >= most_) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("all {} adapters that --max-loaded-loras allows are pinned", most_),
                 "lora_name");
  }
  Insert(adapter, State::kLoading);
  return OkStatus();
}

void Adapters::EndLoad(std::string_view id, const Status& status, bool is_known) {
  const MutexLock lock(&mutex_);
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;  // the engine has died
  Entry& entry = it->second;
  if (status.ok()) {
    entry.state = State::kReady;
    return;
  }
  entry.error = status;
  if (!is_known) {
    entry.state = State::kIncomplete;
    return;
  }
  Unname(entry);
  // The next request that names it tries again.
  if (entry.is_implicit) evicted_[entry.adapter.name] = entry.adapter;
  entry.state = State::kFailed;
  if (entry.users == 0) entries_.erase(it);
}

StatusOr<std::string> Adapters::StartUnload(std::string_view name) {
  const MutexLock lock(&mutex_);
  Entry* entry = Find(name);
  if (entry == nullptr && evicted_.contains(name)) {
    evicted_.erase(evicted_.find(name));
    return std::string();
  }
  if (entry == nullptr || entry->state == State::kLeaving || entry->state == State::kLoading) {
    return Error(StatusCode::kNotFound, fmt::format("no adapter `{:.100}` is loaded", name),
                 "lora_name");
  }
  // Requests whose adapter is incomplete have been refused, or are about to be.
  if (entry->users > 0 && entry->state == State::kReady) {
    return Error(StatusCode::kFailedPrecondition,
                 fmt::format("the adapter `{:.100}` is in use by {} requests", name, entry->users),
                 "lora_name");
  }
  entry->before = entry->state;
  entry->state = State::kLeaving;
  return entry->adapter.id;
}

std::optional<Adapters::Adapter> Adapters::StartEviction() {
  const MutexLock lock(&mutex_);
  if (most_ == 0 || ids_.size() <= most_) return std::nullopt;
  Entry* oldest = nullptr;
  size_t here = 0;
  for (const auto& [name, id] : ids_) {
    const auto it = entries_.find(id);
    if (it == entries_.end()) continue;
    Entry& entry = it->second;
    here += entry.state == State::kReady;
    const bool stays = entry.adapter.pinned || entry.users > 0 || entry.used == tick_;
    if (entry.state != State::kReady || stays || entry.is_kept) continue;
    if (oldest == nullptr || entry.used < oldest->used) oldest = &entry;
  }
  if (here <= most_ || oldest == nullptr) return std::nullopt;
  Unname(*oldest);  // it may be loaded again at once, behind this
  oldest->before = oldest->state;
  oldest->state = State::kLeaving;
  oldest->is_evicted = true;
  if (evicted_.size() < kMaxEvicted) evicted_[oldest->adapter.name] = oldest->adapter;
  return oldest->adapter;
}

void Adapters::EndUnload(std::string_view id, bool good) {
  const MutexLock lock(&mutex_);
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  if (good) {
    Unname(it->second);
    entries_.erase(it);
    return;
  }
  // One of the name may be there already, or come.
  if (it->second.is_evicted && Find(it->second.adapter.name) != nullptr) {
    entries_.erase(it);
    return;
  }
  it->second.state = it->second.before;
  it->second.is_kept = it->second.is_evicted;
  ids_[it->second.adapter.name] = it->second.adapter.id;
  evicted_.erase(it->second.adapter.name);
  it->second.is_evicted = false;
}

}  // namespace portico::sglang
