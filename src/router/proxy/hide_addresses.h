// What workers say of their failures often names addresses: their own, those of other workers, of stores
// and sockets behind them. A client has no use for them, and they tell how the fleet is built.
#pragma once

#include <string>
#include <string_view>

#include "router/fleet/worker_set.h"

namespace portico::router {

// `text` with `worker` in place of the hosts of `set`, each with its port, of every IP address that has a port,
// and of the paths of unix sockets. A host whose name has no dot, such as "localhost", is an ordinary word and is
// replaced only where a port or the `//` of a URL says what it is. JSON stays JSON. Linear in the text.
std::string HideAddresses(std::string text, const WorkerSet& set);

}  // namespace portico::router
