#include "app/omni/stage_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "app/command_tools.h"
#include "base/log.h"
#include "pipeline/process/spawn.h"
#include "pipeline/process/stage_worker.h"
#include "pipeline/stages/native_stages.h"

namespace portico {

int StageCommand(int argc, char** argv) {
  if (argc < 1 || fcntl(pipeline::kStageSocket, F_GETFD) < 0) {
    return Fail("omni-stage", "pipelines start this, people do not", kUsageError);
  }
  // Nothing outlives the pipeline, however it ends; this holds over exec, too.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != static_cast<pid_t>(std::strtol(argv[0], nullptr, 10))) return kFailed;
  if (argc > 1) {
    execvp(argv[1], argv + 1);
    std::fprintf(stderr, "portico omni-stage: %s: %s\n", argv[1], std::strerror(errno));
    return 127;
  }
  fcntl(pipeline::kStageSocket, F_SETFD, FD_CLOEXEC);
  InitLog(LogLevel::kInfo);
  _exit(pipeline::RunStageWorker(pipeline::kStageSocket, pipeline::NativeStages()));
}

}  // namespace portico
