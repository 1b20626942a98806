// `portico parse`: a model's output to content, reasoning and tool calls, as JSON Lines.
#pragma once

namespace portico {

// `argv` begins after the command's name. Returns the exit status.
int ParseCommand(int argc, char** argv);

}  // namespace portico
