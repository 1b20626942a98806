// All connections of one server on one shard, in one list for each thing they wait for. Every list
// has one time limit, so it is ordered by due time by itself, and a sweep looks at its front only.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "net/socket/connection.h"
#include "net/socket/session.h"

namespace portico::net {

// The steady clock to a few milliseconds, at a fifth of the price: time limits are moved at every
// request.
TimePoint CoarseNow();

class ConnectionTable {
 public:
  using Limits = std::array<Duration, kWaits>;  // zero: none

  explicit ConnectionTable(const Limits& limits) : limits_(limits) {}
  ~ConnectionTable();
  ConnectionTable(const ConnectionTable&) = delete;
  ConnectionTable& operator=(const ConnectionTable&) = delete;

  Connection* Add(std::unique_ptr<Connection> connection);
  // Puts it at the end of `wait`'s list, due after its limit from now.
  void Move(Connection* connection, Wait wait);
  void Remove(Connection* connection);  // and hands it back to be destroyed by the caller

  // Calls OnTimeout of all that are due.
  void Sweep(TimePoint now);
  // `visit` may close connections, not destroy them.
  void ForEach(const std::function<void(Connection&)>& visit);
  size_t size() const { return size_; }

 private:
  struct List {
    Connection* first = nullptr;
    Connection* last = nullptr;
  };

  void Unlink(Connection* connection);
  void Link(Connection* connection, Wait wait);

  Limits limits_;
  std::array<List, kWaits> lists_;
  size_t size_ = 0;
};

}  // namespace portico::net
