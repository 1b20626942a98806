// The command line of `portico launch`, and those of the workers that it starts.
#pragma once

#include <string>
#include <vector>

#include "app/gateway/worker_processes.h"
#include "base/status.h"

namespace portico {

struct LaunchOptions {
  int workers = 1;
  int base_port = 31000;
  int tensor_parallel = 1;
  int pipeline_parallel = 1;
  int first_gpu = -1;  // of the first worker (--base-gpu-id); -1: it is not given, and 0
  int gpu_step = -1;   // between a worker's GPUs (--gpu-id-step); -1: it is not given, and 1
  std::string engine = "llama";
  std::string host = "127.0.0.1";
  std::string port = "30000";
  std::string model;
  std::vector<std::string> model_words;  // the flag that names it, as it was written
  std::string sglang_python = "python3";
  std::string worker_command;
  std::string worker_key;              // secret; --api-key; empty: it is not given
  std::vector<std::string> passed_on;  // to the workers
  std::vector<std::string> router;     // with their prefix
};

// Without the program's and the command's name. One word that belongs to no flag is vLLM's model, as in `vllm serve MODEL`.
// INVALID_ARGUMENT names the flag. Flags that concern
// launch have SGLang's, vLLM's and argparse's shorter names too: --dp, -dp, --tp, --pp.
StatusOr<LaunchOptions> ParseLaunchOptions(const std::vector<std::string>& words);

// INVALID_ARGUMENT: the engine serves no model of its own, and none is named. (SGLang and vLLM would end at once, and again at each
// start.) A file that is passed on with --config may name it.
Status CheckModelNamed(const LaunchOptions& options);

// Whether the workers take token ids over gRPC at their port, and nothing over HTTP there: SGLang's --smg-grpc-mode
// (--grpc-mode in older releases). Such a worker's port + 1 is that of its server of metrics.
bool WorkersTakeTokens(const LaunchOptions& options);

// Of the worker of that rank, at a port. Its GPUs are no other's of this launch.
WorkerCommand LaunchedWorker(const LaunchOptions& options, int rank, int port);

}  // namespace portico
