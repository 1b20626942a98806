// What long-running commands share.
#pragma once

#include <signal.h>

#include <string>
#include <vector>

namespace portico {

// The exit status after a wrong command line. 1 is for what fails later, and 130 for a second Ctrl-C.
inline constexpr int kUsageError = 2;

// Connections are file descriptors: takes as many as the system gives.
void RaiseFileLimit();

// Blocks SIGINT, SIGTERM and `more` here and in every thread made later: only who waits for them by
// sigtimedwait gets them.
sigset_t BlockSignals(std::initializer_list<int> more);

}  // namespace portico
