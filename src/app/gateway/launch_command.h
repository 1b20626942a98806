// `portico launch`: starts workers and a gateway in front of them.
#pragma once

namespace portico {

int LaunchCommand(int argc, char** argv);

}  // namespace portico
