// How many processors this process may use.
#pragma once

#include <string>

namespace portico {

// At least 1: the processors of its affinity mask (taskset, cpusets), or fewer where a control group's quota allows less
// than that (a container's --cpus), rounded up. Threads beyond it would only take turns.
int UsableProcessors();

// The processors' worth of time that the control groups of a process allow, rounded up; 0: no limit. `root` is where the
// control groups are mounted (/sys/fs/cgroup) and `own` the text of /proc/self/cgroup. Version 2 and version 1.
int QuotaOf(const std::string& root, const std::string& own);

}  // namespace portico
