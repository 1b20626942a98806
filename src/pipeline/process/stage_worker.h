// The other end: what runs in a stage process.
#pragma once

#include "pipeline/coordinator/pipeline.h"

namespace portico::pipeline {

// Makes the stages that the pipeline names over the socket and runs requests through them, each
// run on a thread of its own, until the other end closes the socket. Then the process shall end at
// once: threads may still work. Call on the main thread.
int RunStageWorker(int socket, const Pipeline::Kinds& kinds);

}  // namespace portico::pipeline
