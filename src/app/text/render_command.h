// `portico render`: a conversation through a chat template, for a person or as JSON Lines.
#pragma once

namespace portico {

// `argv` begins after the command's name. Returns the exit status.
int RenderCommand(int argc, char** argv);

}  // namespace portico
