// `portico detokenize`: token ids to text, for a person or as JSON Lines.
#pragma once

namespace portico {

// `argv` begins after the command's name. Returns the exit status.
int DetokenizeCommand(int argc, char** argv);

}  // namespace portico
