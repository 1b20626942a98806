#include "app/gateway/launch_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "app/command_tools.h"
#include "app/options/options_table.h"
#include "app/options/route_options_table.h"
#include "router/worker.h"

namespace portico {
namespace {

constexpr int kArgparseError = 2;  // Python's argparse ends so where a command line is wrong

Status ReadNumber(std::string_view flag, const std::string& text, int min, int max, int* value) {
  if (absl::SimpleAtoi(text, value) && *value >= min && *value <= max) return OkStatus();
  return Error(StatusCode::kInvalidArgument,
               fmt::format("{}: `{}` is not in {}..{}", flag, text, min, max));
}

// --tp-size, --tensor-parallel-size, what argparse takes for them, and vLLM's -tp.
bool IsSizeFlag(std::string_view flag, std::string_view letters, std::string_view word) {
  const std::string brief = fmt::format("--{}-size", letters);
  const std::string full = fmt::format("--{}-parallel-size", word);
  const auto shortens = [flag](std::string_view name, size_t least) {
    return flag.size() >= least && name.starts_with(flag);
  };
  return flag == brief.substr(1, 1 + letters.size()) || shortens(brief, 2 + letters.size()) ||
         // Others begin as it does: --data-parallel-rank, --data-parallel-size-local.
         shortens(full, full.size() - std::string_view("ize").size());
}

// Whether argparse takes `flag` for `name`; of one that is shorter than `least` SGLang sees other flags too.
bool Shortens(std::string_view flag, std::string_view name, std::string_view least) {
  return flag.starts_with(least) && name.starts_with(flag);
}

// --smg-grpc-mode, and its older name.
bool IsGrpcModeFlag(std::string_view flag) {
  return Shortens(flag, "--smg-grpc-mode", "--smg-g") || Shortens(flag, "--grpc-mode", "--grpc-m");
}

// A further port of SGLang's server: two names of one for metrics, and one for gRPC.
bool IsPortFlag(std::string_view flag) {
  return Shortens(flag, "--smg-http-sidecar-port", "--smg-h") ||
         Shortens(flag, "--grpc-http-sidecar-port", "--grpc-h") ||
         Shortens(flag, "--grpc-port", "--grpc-p");
}

bool HasRouteOption(std::string_view name) {
  const auto options = RouteOptionTable();
  return std::any_of(options.begin(), options.end(),
                     [name](const RouteOption& option) { return option.name == name; });
}

// A flag that the gateway has and the workers do not: they would end at once, and what they say names no other flag.
Status CheckPassedOn(const LaunchOptions& options) {
  if (!options.worker_command.empty()) return OkStatus();
  const bool ours = options.engine == "llama" || options.engine == "mock";
  for (const std::string& word : options.passed_on) {
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    const bool only_here = ours && HasRouteOption(name) && FindOption(name) == nullptr;
    // --policy is one of serve's, but not with these engines, and none of the other servers'. --config is in no table.
    if (name != "policy" && (!only_here || name == "config")) continue;
    return Error(
        StatusCode::kInvalidArgument,
        fmt::format("--{0} is no flag of the workers; the gateway's is --router-{0}", name));
  }
  return OkStatus();
}

// Each worker would get the same port, which one of them can bind: the others go on without it, or end.
Status CheckPorts(const LaunchOptions& options) {
  if (options.engine != "sglang" || !options.worker_command.empty() || options.workers == 1) {
    return OkStatus();
  }
  for (const std::string& word : options.passed_on) {
    const std::string_view flag = std::string_view(word).substr(0, word.find('='));
    if (!IsPortFlag(flag)) continue;
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("{} names one port, and there are {} workers: leave it out, or start "
                             "the workers yourself",
                             flag, options.workers));
  }
  return OkStatus();
}

// A word that no flag takes: vLLM's users write the model so.
Status TakePositional(const std::string& word, LaunchOptions* options) {
  if (word.empty()) return OkStatus();
  if (!options->worker_command.empty()) {
    options->passed_on.insert(options->passed_on.begin(), word);
    return OkStatus();
  }
  if (options->engine != "vllm" || !options->model.empty()) {
    return Error(StatusCode::kInvalidArgument,
                 fmt::format("unexpected argument `{}`; --model-path names a model", word));
  }
  options->model = word;
  return OkStatus();
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

}  // namespace

StatusOr<LaunchOptions> ParseLaunchOptions(const std::vector<std::string>& words) {
  LaunchOptions options;
  std::string positional;
  bool passes_on = false;  // the word before
  for (size_t at = 0; at < words.size(); ++at) {
    const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at);
    const bool behind_passed_on = std::exchange(passes_on, false);
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
    // As it was written: a value that begins with `-` has to stay behind its `=`.
    const auto pass_on = [&] {
      options.passed_on.insert(options.passed_on.end(), begin,
                               words.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    };
    if (IsSizeFlag(flag, "dp", "data")) {
      PORTICO_RETURN_IF_ERROR(take());
      PORTICO_RETURN_IF_ERROR(ReadNumber(flag, value, 1, 1024, &options.workers));
    } else if (flag == "--router-dp-worker-base-port") {
      PORTICO_RETURN_IF_ERROR(take());
      PORTICO_RETURN_IF_ERROR(ReadNumber(flag, value, 1, 65535, &options.base_port));
    } else if (flag == "--engine" || flag == "--host" || flag == "--port" ||
               flag == "--worker-command" || flag == "--sglang-python") {
      PORTICO_RETURN_IF_ERROR(take());
      (flag == "--engine"           ? options.engine
       : flag == "--host"           ? options.host
       : flag == "--port"           ? options.port
       : flag == "--worker-command" ? options.worker_command
                                    : options.sglang_python) = value;
    } else if (flag.starts_with("--router-")) {
      options.router.push_back(words[at]);
      while (!has_value && at + 1 < words.size() && !words[at + 1].starts_with("--")) {
        options.router.push_back(words[++at]);
      }
    } else {
      const bool tensor = IsSizeFlag(flag, "tp", "tensor");
      if (tensor || IsSizeFlag(flag, "pp", "pipeline")) {
        PORTICO_RETURN_IF_ERROR(take());
        PORTICO_RETURN_IF_ERROR(ReadNumber(
            flag, value, 1, 1024, tensor ? &options.tensor_parallel : &options.pipeline_parallel));
        pass_on();
        continue;
      }
      if (flag == "--base-gpu-id" || flag == "--gpu-id-step") {
        const bool first = flag == "--base-gpu-id";
        PORTICO_RETURN_IF_ERROR(take());
        PORTICO_RETURN_IF_ERROR(ReadNumber(flag, value, first ? 0 : 1, 1 << 16,
                                           first ? &options.first_gpu : &options.gpu_step));
        continue;
      }
      if (flag == "--model" || Shortens(flag, "--model-path", "--model-p")) {
        PORTICO_RETURN_IF_ERROR(take());
        options.model = value;
        options.model_words.assign(begin, words.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        continue;
      }
      // Behind a word that is passed on it may be a flag's value.
      if (!behind_passed_on && !flag.starts_with("-") && positional.empty()) {
        positional = words[at];
        continue;
      }
      if (Shortens(flag, "--api-key", "--api-k")) {
        PORTICO_RETURN_IF_ERROR(take());
        if (value.empty()) {
          return Error(StatusCode::kInvalidArgument,
                       "--api-key is empty; leave it out to serve without a key");
        }
        if (!router::IsHeaderKey(value)) {
          return Error(StatusCode::kInvalidArgument, "--api-key has other than printable ASCII");
        }
        options.worker_key = value;
        pass_on();
        continue;
      }
      options.passed_on.push_back(words[at]);
      passes_on = true;
    }
  }
  const bool known = options.engine == "llama" || options.engine == "mock" ||
                     options.engine == "sglang" || options.engine == "vllm";
  if (!known) {
    return Error(
        StatusCode::kInvalidArgument,
        fmt::format("--engine: `{}` is not one of llama, mock, sglang, vllm", options.engine));
  }
  PORTICO_RETURN_IF_ERROR(TakePositional(positional, &options));
  PORTICO_RETURN_IF_ERROR(CheckPassedOn(options));
  PORTICO_RETURN_IF_ERROR(CheckPorts(options));
  return options;
}

Status CheckModelNamed(const LaunchOptions& options) {
  const bool others = options.engine == "sglang" || options.engine == "vllm";
  if (!others || !options.worker_command.empty() || !options.model.empty()) return OkStatus();
  const bool from_file = std::any_of(
      options.passed_on.begin(), options.passed_on.end(),
      [](const std::string& word) { return word == "--config" || word.starts_with("--config="); });
  if (from_file) return OkStatus();
  return Error(StatusCode::kInvalidArgument,
               fmt::format("--engine {} needs --model-path MODEL", options.engine));
}

bool WorkersTakeTokens(const LaunchOptions& options) {
  return options.engine == "sglang" && options.worker_command.empty() &&
         std::any_of(options.passed_on.begin(), options.passed_on.end(), IsGrpcModeFlag);
}

WorkerCommand LaunchedWorker(const LaunchOptions& options, int rank, int port) {
  WorkerCommand command;
  command.name = fmt::format("worker {} on port {}", rank, port);
  if (options.workers > 1) command.log_mark = fmt::format("worker {}", rank);
  std::vector<std::string>& words = command.words;
  const std::string port_text = std::to_string(port);
  const int gpus = options.tensor_parallel * options.pipeline_parallel;
  const int step = std::max(1, options.gpu_step);
  const int first_gpu = std::max(0, options.first_gpu) + rank * gpus * step;
  const bool spaced =
      options.worker_command.empty() && (options.engine == "sglang" || options.engine == "vllm");
  if (!options.worker_command.empty()) {
    words = Split(options.worker_command);
    for (std::string& word : words) {
      Replace(&word, "{port}", port_text);
      Replace(&word, "{rank}", std::to_string(rank));
    }
  } else if (options.engine == "sglang") {
    words = {options.sglang_python,
             "-m",
             "sglang.launch_server",
             "--host",
             "127.0.0.1",
             "--port",
             port_text,
             "--base-gpu-id",
             std::to_string(first_gpu)};
    command.usage_error = kArgparseError;
    if (step > 1) words.insert(words.end(), {"--gpu-id-step", std::to_string(step)});
  } else if (options.engine == "vllm") {
    words = {"vllm", "serve"};
    if (!options.model.empty()) words.push_back(options.model);
    words.insert(words.end(), {"--host", "127.0.0.1", "--port", port_text});
    command.usage_error = kArgparseError;
    std::string devices;
    for (int i = 0; i < gpus; ++i) {
      devices += fmt::format("{}{}", i == 0 ? "" : ",", first_gpu + i * step);
    }
    command.environment.emplace_back("CUDA_VISIBLE_DEVICES", devices);
    // It may have come from the environment, which other users of the machine cannot see.
    if (!options.worker_key.empty()) {
      command.environment.emplace_back("VLLM_API_KEY", options.worker_key);
    }
  } else {
    words = {ThisProgram(), "serve",     "--engine", options.engine,
             "--host",      "127.0.0.1", "--port",   port_text};
    command.usage_error = kUsageError;
  }
  const bool has_model = options.engine == "vllm" || !options.worker_command.empty();
  if (!options.model.empty() && !has_model) {
    words.insert(words.end(), {"--model-path", options.model});
  } else if (!options.worker_command.empty()) {
    words.insert(words.end(), options.model_words.begin(), options.model_words.end());
  }
  if (!spaced && options.first_gpu >= 0) {
    words.insert(words.end(), {"--base-gpu-id", std::to_string(options.first_gpu)});
  }
  if (!spaced && options.gpu_step >= 0) {
    words.insert(words.end(), {"--gpu-id-step", std::to_string(options.gpu_step)});
  }
  words.insert(words.end(), options.passed_on.begin(), options.passed_on.end());
  return command;
}

}  // namespace portico
