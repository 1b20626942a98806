// Running a program for one text: what it reads and what it writes, with an end in any case.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace portico::pipeline {

// UNAVAILABLE: no program of that name is there (as a path, or in PATH).
Status FindProgram(const std::string& name);

struct ProgramEvents {
  std::function<bool(std::string_view)> on_output;  // false: enough, end it
  std::function<bool()> stopped;                    // asked some 20 times a second: end it
};

// Spawns the words without a shell, gives `input` to its standard input and its standard output to
// the events, and waits for its end; it and what it has started are killed when they are stopped.
// INTERNAL: it did not end with status 0. Blocks. Thread safe.
Status RunProgram(const std::vector<std::string>& words, std::string_view input,
                  const ProgramEvents& events);

}  // namespace portico::pipeline
