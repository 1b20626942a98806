// Streams that are not sent yet. Choices that share a prompt wait until a request that computes the prompt alone has
// ended, and find it in the prefix cache then; that request is a stream of the link's own, which nobody hears of. Streams
// of an adapter wait until it is loaded.
#include <iterator>
#include <utility>

#include "engine/sglang/link/scheduler_link.h"

namespace portico::sglang {

bool SchedulerLink::ParkUntilLora(Begin& item) {
  const StatusOr<bool> loaded = check_lora_(item.stream.lora);
  if (!loaded.ok()) {
    EndUnsent(std::move(item.stream), FinishReason::kError, loaded.status());
    return true;
  }
  item.stream.awaits_lora = false;
  if (*loaded) return false;
  item.stream.awaits_lora = true;
  Park(&gated_[item.stream.lora], item);
  return true;
}

void SchedulerLink::Park(Parked* behind, Begin& item) {
  const StreamId id = item.stream.id;
  behind->push_back(std::move(item));
  places_[id] = std::prev(behind->end());
}

void SchedulerLink::Take(Recheck& item) {
  const auto it = gated_.find(item.lora);
  if (it == gated_.end()) return;
  Parked waiting = std::move(it->second);
  gated_.erase(it);
  for (Begin& each : waiting) Take(each);
}

bool SchedulerLink::ParkBehindPrefix(Begin& item) {
  const StreamId id = item.stream.prefix;
  auto it = parked_.find(id);
  if (it == parked_.end()) {
    if (item.prefix.empty()) return false;
    Send(std::move(item.prefix));
    Stream prefix;
    prefix.id = id;
    streams_.emplace(id, std::move(prefix));
    live_.fetch_add(1, std::memory_order_relaxed);
    it = parked_.emplace(id, Parked()).first;
  }
  item.prefix.clear();
  Park(&it->second, item);
  return true;
}

// Nobody waits for it any more. It keeps the adapter loaded that the last of them kept.
void SchedulerLink::LeavePrefix(StreamId prefix, Stream* stream) {
  const auto it = streams_.find(prefix);
  if (it == streams_.end()) return;
  if (it->second.lora.empty()) it->second.lora = std::exchange(stream->lora, {});
  AbortOne abort{prefix};
  Take(abort);
}

void SchedulerLink::AbortParked(Parked::iterator at) {
  Stream stream = std::move(at->stream);
  if (stream.awaits_lora) {
    gated_.find(stream.lora)->second.erase(at);
  } else {
    Parked& waiting = parked_.find(stream.prefix)->second;
    waiting.erase(at);
    if (waiting.empty()) LeavePrefix(stream.prefix, &stream);
  }
  EndUnsent(std::move(stream), FinishReason::kAbort, OkStatus());
}

void SchedulerLink::AbortAllParked() {
  for (auto& [prefix, waiting] : parked_) {
    Parked ended;
    ended.swap(waiting);
    if (!ended.empty()) LeavePrefix(prefix, &ended.front().stream);
    for (Begin& each : ended) EndUnsent(std::move(each.stream), FinishReason::kAbort, OkStatus());
  }
  const auto gated = std::exchange(gated_, {});
  for (const auto& [lora, waiting] : gated) {
    for (const Begin& each : waiting) EndUnsent(each.stream, FinishReason::kAbort, OkStatus());
  }
}

void SchedulerLink::EndAllParked(FinishReason reason, const Status& error) {
  const auto parked = std::exchange(parked_, {});
  for (const auto& [prefix, waiting] : parked) {
    for (const Begin& each : waiting) EndUnsent(each.stream, reason, error);
  }
  const auto gated = std::exchange(gated_, {});
  for (const auto& [lora, waiting] : gated) {
    for (const Begin& each : waiting) EndUnsent(each.stream, reason, error);
  }
}

// Where it was aborted by somebody else, as by the scheduler itself, SGLang's front end goes on without it too.
void SchedulerLink::EndPrefix(StreamId prefix, FinishReason reason, const Status& error) {
  const auto it = parked_.find(prefix);
  if (it == parked_.end()) return;
  Parked waiting = std::move(it->second);
  parked_.erase(it);
  for (Begin& each : waiting) {
    if (reason == FinishReason::kError) {
      EndUnsent(std::move(each.stream), FinishReason::kError, error);
    } else {
      Take(each);
    }
  }
}

}  // namespace portico::sglang
