// Which program this is: beside it lie its files, and it is run again as compiler of grammars and as stages of a pipeline.
#pragma once

#include <string>

namespace portico {

// This process's own, unless SetProgramPath() has named another.
std::string ProgramPath();
// For programs that Portico is a part of. Before anything of it runs.
void SetProgramPath(std::string path);

}  // namespace portico
