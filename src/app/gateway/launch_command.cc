#include "app/gateway/launch_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "app/command_tools.h"
#include "app/gateway/gateway_loop.h"
#include "app/gateway/launch_options.h"
#include "app/gateway/worker_processes.h"
#include "app/options/key_variable.h"
#include "base/log.h"
#include "base/log_file.h"

namespace portico {
namespace {

constexpr char kHelp[] =
    R"(usage: portico launch [--model-path MODEL] [--dp-size N] [--engine ENGINE] [WORKER FLAGS] [--router-FLAG ...]

Starts N workers on this machine and a gateway in front of them, and restarts workers that exit.

  --dp-size N, --data-parallel-size N, --dp N
      Number of workers. [1]
  --engine llama|mock|sglang|vllm
      Program of the workers: `portico serve` with one of its engines, `python3 -m sglang.launch_server` or
      `vllm serve`. [llama]
  --model-path MODEL, --model MODEL
      The workers' model, which vLLM's workers take without the flag too; llama and mock have a demo model.
  --sglang-python PATH
      Python interpreter that has SGLang. [python3]
  --host HOST, --port PORT
      Address and port of the gateway. [127.0.0.1, 30000]
  --router-dp-worker-base-port PORT
      Lowest port of the workers, which take the next free ones. [31000]
  --worker-command WORDS
      Command that starts a worker instead, split at spaces; {port} and {rank} are replaced.
  --router-FLAG VALUE
      A flag of the gateway: portico route --help lists them.
  other flags
      Passed to the workers unchanged. --api-key (or PORTICO_API_KEY) is also the key that clients send,
      unless --router-api-key or the file of --router-config names another one for them.
      For sglang each worker gets a --base-gpu-id of its own: that of the command line, plus --tp-size
      times --pp-size GPUs for each worker before it; for vllm CUDA_VISIBLE_DEVICES likewise. With
      sglang's --smg-grpc-mode (--grpc-mode) they take token ids, and each has two ports in a row. Its
      --smg-http-sidecar-port (--grpc-http-sidecar-port) and --grpc-port name one port, and are rejected
      with more than one worker.
)";

constexpr Duration kPatience = std::chrono::seconds(20);

constexpr std::string_view kLaunch = "launch";

// "worker 0 (w1) on port 31000": also what the gateway calls it. (The ranks of a server have ids of their own.)
void AddIds(std::vector<WorkerCommand>* commands) {
  for (size_t i = 0; i < commands->size(); ++i) {
    std::string& name = (*commands)[i].name;
    name.insert(name.find(" on port"), fmt::format(" (w{})", i + 1));
  }
}

}  // namespace

int LaunchCommand(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  for (const std::string& word : words) {
    if (word != "--help" && word != "-h") continue;
    std::fputs(kHelp, stdout);
    return 0;
  }
  auto options = ParseLaunchOptions(words);
  if (!options.ok()) return Fail(kLaunch, MessageOf(options.status()), kUsageError);
  if (const Status named = CheckModelNamed(*options); !named.ok()) {
    return Fail(kLaunch, MessageOf(named), kUsageError);
  }
  const Status key = TakeKeyVariable(&options->worker_key);  // as Portico's servers do
  if (!key.ok()) return Fail(kLaunch, MessageOf(key), kUsageError);
  std::vector<WorkerCommand> commands;
  std::vector<std::string> urls;
  const bool tokens = WorkersTakeTokens(*options);
  const int ports = tokens ? 2 : 1;  // of a worker
  int next = options->base_port;
  for (int rank = 0; rank < options->workers; ++rank) {
    const auto port = FreePorts(next, ports);
    if (!port.ok()) return Fail(kLaunch, MessageOf(port.status()));
    commands.push_back(LaunchedWorker(*options, rank, *port));
    if (commands.back().words.empty())
      return Fail(kLaunch, "--worker-command is empty", kUsageError);
    WorkerCommand& command = commands.back();
    command.url = fmt::format("{}://127.0.0.1:{}", tokens ? "grpc" : "http", *port);
    urls.push_back(command.url);
    next = *port + ports;
  }
  // In front of workers that are only named: the gateway numbers these from w1 on.
  std::vector<std::string> started{"--router-worker-urls"};
  started.insert(started.end(), urls.begin(), urls.end());
  options->router.insert(options->router.begin(), started.begin(), started.end());
  options->router.insert(options->router.end(),
                         {"--router-host", options->host, "--router-port", options->port});
  constexpr std::string_view kPrefix = "router-";
  auto parsed = ParseRouteOptions(options->router, kPrefix);
  if (!parsed.ok()) return Fail(kLaunch, MessageOf(parsed.status()), kUsageError);
  RouteOptions& route = parsed->options;
  if (!route.dp_aware) AddIds(&commands);
  AddStarted(options->worker_key, std::move(urls), &route);
  const auto level = ParseLogLevel(route.log_level);
  if (!level.ok()) return Fail(kLaunch, MessageOf(level.status()), kUsageError);
  InitLog(*level);
  if (!route.log_dir.empty()) {
    const Status logged = LogToFolder(route.log_dir);
    if (!logged.ok()) return Fail(kLaunch, fmt::format("--router-log-dir: {}", MessageOf(logged)));
  }
  RaiseFileLimit();
  const sigset_t signals = BlockSignals({SIGHUP, SIGUSR1});
  WorkerProcesses workers(std::move(commands));
  const Status ran = RunGateway(route, &options->router, kPrefix, signals, &workers);
  LogInfo("stopping the workers");
  workers.Stop(kPatience);
  if (ran.ok()) return 0;
  return Fail(kLaunch, MessageOf(ran),
              ran.code() == StatusCode::kInvalidArgument ? kUsageError : kFailed);
}

}  // namespace portico
