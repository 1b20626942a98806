// An answer that this process makes for a caller of its own: made on a shard, read by the caller's thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "net/http/exchange.h"
#include "net/http/http1_client.h"
#include "net/loop/shard.h"

namespace portico {

// The status of an error's answer, with its message and field: INVALID_ARGUMENT for 4xx,
// RESOURCE_EXHAUSTED for 429, else UNAVAILABLE.
Status StatusOfAnswer(int status, const std::string& body);

class LocalAnswer {
 public:
  // What answers the request, on the shard.
  using Dispatch = std::function<void(std::unique_ptr<net::Exchange>)>;

  struct Reading {
    bool whole = false;       // by Await(), else by Receive()
    bool wants_done = false;  // events that end without [DONE] were cut off
  };

  static std::unique_ptr<LocalAnswer> Start(net::Shard& shard, net::HttpRequest request,
                                            Dispatch dispatch, Reading reading);
  // Drops the request, if it still runs. The shard must outlive the task that this posts.
  ~LocalAnswer();
  LocalAnswer(const LocalAnswer&) = delete;
  LocalAnswer& operator=(const LocalAnswer&) = delete;

  // All of these wait, on one thread. An answer of status 300 and more is a failure of each of them.
  StatusOr<net::ResponseHead> Head();
  // The data of the next event, or bytes that have come; nothing at the end.
  StatusOr<std::optional<std::string>> Receive();
  StatusOr<std::string> Await();

 private:
  class State;
  LocalAnswer(net::Shard& shard, std::shared_ptr<State> state);

  net::Shard& shard_;
  std::shared_ptr<State> state_;
};

}  // namespace portico
