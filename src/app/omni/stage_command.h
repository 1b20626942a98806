// `portico omni-stage`: a process that runs stages of a pipeline. Only a pipeline starts it.
#pragma once

namespace portico {

// PARENT [WORDS …]: the pid of the process that started it, and the program that it becomes; none:
// it runs native stages itself.
int StageCommand(int argc, char** argv);

}  // namespace portico
