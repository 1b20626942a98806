// portico serve: loads models and answers HTTP until SIGINT or SIGTERM.
#pragma once

namespace portico {

// `argv` begins after the command's name. The exit status.
int ServeCommand(int argc, char** argv);

}  // namespace portico
