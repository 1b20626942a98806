#include "router/place_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace portico::router {

PlaceQueue::TicketPtr PlaceQueue::Wait(net::Shard& shard, Priority priority, WorkerSetPtr set,
                                       const WorkerGroup& group, uint64_t* turn,
                                       absl::AnyInvocable<void()> on_place, uint64_t only) {
  const MutexLock lock(&mutex_);
  if (*turn == 0) {
    if (static_cast<int64_t>(waiting_.size()) >= limit_.load(std::memory_order_relaxed)) {
      return nullptr;
    }
    *turn = ++turns_;
  }
  auto ticket = std::make_shared<Ticket>();
  ticket->shard = &shard;
  ticket->on_place = std::move(on_place);
  ticket->set = std::move(set);
  ticket->group = &group;
  ticket->only = only;
  ticket->place = {priority, *turn};
  waiting_.emplace(ticket->place, ticket);
  waiting_count_.fetch_add(1, std::memory_order_relaxed);
  return ticket;
}

PlaceQueue::Waiting::iterator PlaceQueue::LetGo(Waiting::iterator at) {
  TicketPtr ticket = std::move(at->second);
  waiting_count_.fetch_sub(1, std::memory_order_relaxed);
  net::Shard& shard = *ticket->shard;
  shard.Post([ticket = std::move(ticket)] {
    if (ticket->on_place) ticket->on_place();
  });
  return waiting_.erase(at);
}

void PlaceQueue::GiveUp(const TicketPtr& ticket) {
  ticket->on_place = nullptr;
  const MutexLock lock(&mutex_);
  if (waiting_.erase(ticket->place) > 0) waiting_count_.fetch_sub(1, std::memory_order_relaxed);
}

void PlaceQueue::NoteFree(const Worker& worker) {
  if (waiting() == 0) return;
  const MutexLock lock(&mutex_);
  const auto first = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& entry) {
    const Ticket& ticket = *entry.second;
    if (ticket.only != 0) return ticket.only == worker.number();
    const std::vector<Worker*>& workers = ticket.group->workers;
    return std::find(workers.begin(), workers.end(), &worker) != workers.end();
  });
  if (first != waiting_.end()) LetGo(first);
}

void PlaceQueue::Tick(absl::FunctionRef<bool(const WorkerSet&, const WorkerGroup&)> look) {
  if (waiting() == 0) return;
  const MutexLock lock(&mutex_);
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    at = look(*at->second->set, *at->second->group) ? LetGo(at) : std::next(at);
  }
}

}  // namespace portico::router
