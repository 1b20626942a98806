// `portico route` before token workers alone, with flags that are serve's and not its own: a server
// whose model others compute (engine grpc).
#pragma once

#include <string>
#include <vector>

namespace portico {

// Whether the command line names workers by grpc:// and no others, and has a flag that is not
// route's.
bool RoutesTokens(const std::vector<std::string>& words);

// Runs it: the flags are serve's, so what serve does not know is refused by name. The exit status.
int RouteTokens(const std::vector<std::string>& words);

}  // namespace portico
