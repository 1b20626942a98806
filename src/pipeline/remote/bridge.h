// A stage's host between a server and one stage process.
#pragma once

#include <functional>
#include <string>

#include "pipeline/process/channel.h"

namespace portico::pipeline {

// Passes messages on in both directions until an end is gone, `exit` becomes readable, or soon after
// `stopping`. Reads from one end only while the other takes what comes, so that nothing piles up.
// What a server has no business to say ends it, too. Returns why, for the log.
std::string Bridge(Channel& server, Channel& stage, int exit,
                   const std::function<bool()>& stopping);

}  // namespace portico::pipeline
