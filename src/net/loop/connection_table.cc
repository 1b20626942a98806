#include "net/loop/connection_table.h"

#include <ctime>

namespace portico::net {

TimePoint CoarseNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

ConnectionTable::~ConnectionTable() {
  for (List& list : lists_) {
    while (list.first != nullptr) {
      Connection* connection = list.first;
      Remove(connection);
      delete connection;
    }
  }
}

Connection* ConnectionTable::Add(std::unique_ptr<Connection> connection) {
  Connection* added = connection.release();
  Link(added, Wait::kAnswer);
  ++size_;
  return added;
}

void ConnectionTable::Move(Connection* connection, Wait wait) {
  Unlink(connection);
  Link(connection, wait);
}

void ConnectionTable::Remove(Connection* connection) {
  Unlink(connection);
  --size_;
}

void ConnectionTable::Sweep(TimePoint now) {
  for (int i = 0; i < kWaits; ++i) {
    if (limits_[i] == Duration::zero()) continue;
    while (lists_[i].first != nullptr && lists_[i].first->due_ <= now) {
      Connection* connection = lists_[i].first;
      size_t moved = connection->moved_;
      // To the end first: one that is not closed has another period, and the loop ends.
      Move(connection, static_cast<Wait>(i));
      connection->OnTimeout(static_cast<Wait>(i), moved);
    }
  }
}

void ConnectionTable::ForEach(const std::function<void(Connection&)>& visit) {
  std::vector<Connection*> all;
  all.reserve(size_);
  for (List& list : lists_) {
    for (Connection* c = list.first; c != nullptr; c = c->after_) all.push_back(c);
  }
  for (Connection* connection : all) visit(*connection);
}

void ConnectionTable::Unlink(Connection* connection) {
  List& list = lists_[static_cast<int>(connection->listed_)];
  (connection->before_ != nullptr ? connection->before_->after_ : list.first) = connection->after_;
  (connection->after_ != nullptr ? connection->after_->before_ : list.last) = connection->before_;
}

void ConnectionTable::Link(Connection* connection, Wait wait) {
  List& list = lists_[static_cast<int>(wait)];
  Duration limit = limits_[static_cast<int>(wait)];
  if (limit != Duration::zero()) connection->due_ = CoarseNow() + limit;
  connection->listed_ = wait;
  connection->moved_ = 0;
  connection->before_ = list.last;
  connection->after_ = nullptr;
  (list.last != nullptr ? list.last->after_ : list.first) = connection;
  list.last = connection;
}

}  // namespace portico::net
