#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace portico {

// A program to start.
struct ChildProgram {
  std::vector<std::string>
      words;  // its name, sought in PATH unless it has a slash, and its arguments
  // Of ours, and the number that each has in the program. Those above `last` are closed there: sockets that libraries
  // have opened without close-on-exec may be among them.
  std::vector<std::pair<int, int>> descriptors = {};
  int last = 2;
  bool no_input = false;                     // its standard input is empty
  bool own_group = true;                     // Ctrl-C is not for it
  std::vector<std::string> more_names = {};  // NAME=VALUE beside this process's environment
  std::vector<std::string> withheld = {};    // names of this process's environment that it lacks
};

// Starts it with default signal handlers and none blocked. 0, or why it could not be (errno).
int StartChild(ChildProgram program, pid_t* pid);

}  // namespace portico
