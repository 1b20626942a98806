// `portico tokenize`: text to token ids, for a person or as JSON Lines.
#pragma once

namespace portico {

// `argv` begins after the command's name. Returns the exit status.
int TokenizeCommand(int argc, char** argv);

}  // namespace portico
