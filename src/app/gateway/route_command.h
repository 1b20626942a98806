// `portico route`: a gateway in front of workers.
#pragma once

namespace portico {

int RouteCommand(int argc, char** argv);
// `portico check FILE ...`: reads files of `portico route --config` and says what is wrong with them.
int CheckCommand(int argc, char** argv);

}  // namespace portico
