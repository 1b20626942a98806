#include "app/gateway/launch_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "app/command_tools.h"
#include "app/gateway/gateway_loop.h"
#include "app/gateway/worker_processes.h"
#include "base/log.h"
#include "base/log_file.h"

namespace portico {
namespace {

constexpr char kHelp[] =
    R"(usage: portico launch [--model-path MODEL] [--dp-size N] [--engine ENGINE] [WORKER FLAGS] [--router-FLAG ...]

Starts N workers on this machine and a gateway in front of them, and restarts workers that exit.

  --dp-size N, --data-parallel-size N
      Number of workers. [1]
  --engine llama|mock|sglang|vllm
      Program of the workers: `portico serve` with one of its engines, `python3 -m sglang.launch_server` or
      `vllm serve`. [llama]
  --host HOST, --port PORT
      Address and port of the gateway. [127.0.0.1, 30000]
  --router-dp-worker-base-port PORT
      Lowest port of the workers, which take the next free ones. [31000]
  --worker-command WORDS
      Command that starts a worker instead, split at spaces; {port} and {rank} are replaced.
  --router-FLAG VALUE
      A flag of the gateway: portico route --help lists them.
  other flags
      Passed to the workers unchanged. For sglang each worker gets --base-gpu-id, rank times --tp-size;
      for vllm CUDA_VISIBLE_DEVICES.
)";

constexpr Duration kPatience = std::chrono::seconds(20);

struct LaunchOptions {
  int workers = 1;
  int base_port = 31000;
  int gpus = 1;  // of each worker
  std::string engine = "llama";
  std::string host = "127.0.0.1";
  std::string port = "30000";
  std::string model;
  std::string worker_command;
  std::vector<std::string> passed_on;
  std::vector<std::string> router;
};

int Fail(std::string_view message, int status) {
  std::fprintf(stderr, "portico launch: %.*s\n", static_cast<int>(message.size()), message.data());
  return status;
}

Status ReadNumber(std::string_view flag, const std::string& text, int min, int max, int* value) {
  if (absl::SimpleAtoi(text, value) && *value >= min && *value <= max) return OkStatus();
  return Error(StatusCode::kInvalidArgument,
               fmt::format("{}: `{}` is not in {}..{}", flag, text, min, max));
}

StatusOr<LaunchOptions> Parse(const std::vector<std::string>& words) {
  LaunchOptions options;
  for (size_t at = 0; at < words.size(); ++at) {
    std::string flag = words[at];
    std::string value;
    const size_t equals = flag.find('=');
    bool has_value = flag.starts_with("--") && equals != std::string::npos;
    if (has_value) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    const auto take = [&]() -> Status {
      if (has_value) return OkStatus();
      if (at + 1 >= words.size()) {
        return Error(StatusCode::kInvalidArgument, flag + " needs a value");
      }
      value = words[++at];
      return OkStatus();
    };
    if (flag == "--dp-size" || flag == "--data-parallel-size") {
      PORTICO_RETURN_IF_ERROR(take());
      PORTICO_RETURN_IF_ERROR(ReadNumber(flag, value, 1, 1024, &options.workers));
    } else if (flag == "--router-dp-worker-base-port") {
      PORTICO_RETURN_IF_ERROR(take());
      PORTICO_RETURN_IF_ERROR(ReadNumber(flag, value, 1, 65535, &options.base_port));
    } else if (flag == "--engine" || flag == "--host" || flag == "--port" ||
               flag == "--worker-command") {
      PORTICO_RETURN_IF_ERROR(take());
      (flag == "--engine" ? options.engine
       : flag == "--host" ? options.host
       : flag == "--port" ? options.port
                          : options.worker_command) = value;
    } else if (flag.starts_with("--router-")) {
      options.router.push_back(words[at]);
      while (!has_value && at + 1 < words.size() && !words[at + 1].starts_with("--")) {
        options.router.push_back(words[++at]);
      }
    } else {
      if (flag == "--tp-size" || flag == "--tensor-parallel-size") {
        PORTICO_RETURN_IF_ERROR(take());
        PORTICO_RETURN_IF_ERROR(ReadNumber(flag, value, 1, 1024, &options.gpus));
        options.passed_on.insert(options.passed_on.end(), {flag, value});
        continue;
      }
      if (flag == "--model-path" || flag == "--model") {
        PORTICO_RETURN_IF_ERROR(take());
        options.model = value;
        continue;
      }
      options.passed_on.push_back(words[at]);
    }
  }
  const bool known = options.engine == "llama" || options.engine == "mock" ||
                     options.engine == "sglang" || options.engine == "vllm";
  if (!known) {
    return Error(
        StatusCode::kInvalidArgument,
        fmt::format("--engine: `{}` is not one of llama, mock, sglang, vllm", options.engine));
  }
  return options;
}

std::string ThisProgram() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "portico";
}

std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const size_t end = text.find(' ');
    words.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return words;
    text.remove_prefix(end);
  }
}

void Replace(std::string* text, std::string_view mark, const std::string& by) {
  for (size_t at = text->find(mark); at != std::string::npos;
       at = text->find(mark, at + by.size())) {
    text->replace(at, mark.size(), by);
  }
}

WorkerCommand CommandOf(const LaunchOptions& options, int rank, int port) {
  WorkerCommand command;
  command.name = fmt::format("worker {} on port {}", rank, port);
  std::vector<std::string>& words = command.words;
  const std::string port_text = std::to_string(port);
  if (!options.worker_command.empty()) {
    words = Split(options.worker_command);
    for (std::string& word : words) {
      Replace(&word, "{port}", port_text);
      Replace(&word, "{rank}", std::to_string(rank));
    }
  } else if (options.engine == "sglang") {
    words = {"python3",
             "-m",
             "sglang.launch_server",
             "--host",
             "127.0.0.1",
             "--port",
             port_text,
             "--base-gpu-id",
             std::to_string(rank * options.gpus)};
  } else if (options.engine == "vllm") {
    words = {"vllm", "serve", options.model, "--host", "127.0.0.1", "--port", port_text};
    std::string devices;
    for (int i = 0; i < options.gpus; ++i) {
      devices += fmt::format("{}{}", i == 0 ? "" : ",", rank * options.gpus + i);
    }
    command.environment.emplace_back("CUDA_VISIBLE_DEVICES", devices);
  } else {
    words = {ThisProgram(), "serve",     "--engine", options.engine,
             "--host",      "127.0.0.1", "--port",   port_text};
    command.usage_error = kUsageError;
  }
  const bool has_model = options.engine == "vllm" || !options.worker_command.empty();
  if (!options.model.empty() && !has_model) {
    words.insert(words.end(), {"--model-path", options.model});
  }
  words.insert(words.end(), options.passed_on.begin(), options.passed_on.end());
  return command;
}

}  // namespace

int LaunchCommand(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  for (const std::string& word : words) {
    if (word != "--help" && word != "-h") continue;
    std::fputs(kHelp, stdout);
    return 0;
  }
  auto options = Parse(words);
  if (!options.ok()) return Fail(MessageOf(options.status()), 2);
  std::vector<WorkerCommand> commands;
  int next = options->base_port;
  for (int rank = 0; rank < options->workers; ++rank) {
    const auto port = FreePort(next);
    if (!port.ok()) return Fail(MessageOf(port.status()), 1);
    commands.push_back(CommandOf(*options, rank, *port));
    if (commands.back().words.empty()) return Fail("--worker-command is empty", 2);
    options->router.push_back("--router-worker-urls");
    options->router.push_back(fmt::format("http://127.0.0.1:{}", *port));
    next = *port + 1;
  }
  options->router.insert(options->router.end(),
                         {"--router-host", options->host, "--router-port", options->port});
  constexpr std::string_view kPrefix = "router-";
  auto parsed = ParseRouteOptions(options->router, kPrefix);
  if (!parsed.ok()) return Fail(MessageOf(parsed.status()), 2);
  const RouteOptions& route = parsed->options;
  const auto level = ParseLogLevel(route.log_level == "warn" ? "warning" : route.log_level);
  if (!level.ok()) return Fail(MessageOf(level.status()), 2);
  InitLog(*level);
  if (!route.log_dir.empty()) {
    const Status logged = LogToFolder(route.log_dir);
    if (!logged.ok()) return Fail(fmt::format("--router-log-dir: {}", MessageOf(logged)), 1);
  }
  RaiseFileLimit();
  const sigset_t signals = BlockSignals({SIGHUP, SIGUSR1});
  WorkerProcesses workers(std::move(commands));
  const Status ran =
      RunGateway(route, &options->router, kPrefix, signals, [&workers] { return workers.Tick(); });
  LogInfo("stopping the workers");
  workers.Stop(kPatience);
  if (ran.ok()) return 0;
  return Fail(MessageOf(ran), ran.code() == StatusCode::kInvalidArgument ? kUsageError : 1);
}

}  // namespace portico
