// A request that this process answers itself, seen by the proxy as a call to a worker: what the handler
// does with its exchange comes out at the call's events, at the end of the turn. Everything on one shard.
//
// While the call is paused the answer waits here; a handler that writes more than `max_unsent` bytes
// meanwhile is told that its client has left, and the call that the answer was lost.
#pragma once

#include <cstddef>
#include <memory>

#include "net/http/exchange.h"
#include "net/http/http1_client.h"

namespace portico::router {

struct LocalCall {
  std::unique_ptr<net::HttpCall> call;
  std::unique_ptr<net::Exchange> exchange;  // for the handler
};

// `events` outlives the call.
LocalCall MakeLocalCall(net::Shard& shard, net::HttpRequest request, net::HttpCallEvents& events,
                        size_t max_unsent);

}  // namespace portico::router
