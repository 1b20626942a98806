#include "app/load/sglang_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "app/load/sglang_flags.h"
#include "base/log.h"
#include "engine/sglang/sglang_engine.h"
#include "router/local_fleet.h"
#include "router/policy/make_policy.h"

namespace portico {
namespace {

using EnginePtr = std::unique_ptr<Engine>;

// What a front end needs after its requests have ended.
constexpr std::chrono::seconds kTimeToStop{10};

// The last value of a flag, in either of argparse's two forms; empty: it is not there.
std::string ValueOf(const std::vector<std::string>& flags,
                    std::initializer_list<std::string_view> names) {
  std::string value;
  for (size_t i = 0; i < flags.size(); ++i) {
    for (const std::string_view name : names) {
      if (flags[i] == name && i + 1 < flags.size()) {
        value = flags[i + 1];
      } else if (flags[i].starts_with(name) && flags[i].size() > name.size() &&
                 flags[i][name.size()] == '=') {
        value = flags[i].substr(name.size() + 1);
      }
    }
  }
  return value;
}

int NumberOf(const std::vector<std::string>& flags, std::initializer_list<std::string_view> names,
             int otherwise) {
  int number = 0;
  return absl::SimpleAtoi(ValueOf(flags, names), &number) ? number : otherwise;
}

std::vector<std::string> AttachFiles(const ModelOptions& options) {
  return absl::StrSplit(options.attach, ',', absl::SkipEmpty());
}

Status CheckTransport(const ModelOptions& options) {
  if (options.sglang_transport == "shm") {
    return Error(
        StatusCode::kInvalidArgument,
        "--sglang-transport shm is not available: the sockets' share of the CPU time that a "
        "step takes is too small for shared memory to save a fifth of it (docs/sglang.md)");
  }
  if (options.sglang_transport == "tcp" && !options.attach.empty()) {
    return Error(StatusCode::kInvalidArgument,
                 "--sglang-transport is of an SGLang that is started here; with --attach, give its "
                 "launcher --transport tcp");
  }
  return OkStatus();
}

// Starts them at the same time: each reads the same weights, and most of it is waiting.
std::vector<StatusOr<EnginePtr>> StartAll(const std::vector<sglang::SglangOptions>& wanted,
                                          const LoadProgress& progress) {
  std::vector<StatusOr<EnginePtr>> engines(wanted.size());
  std::vector<std::thread> threads;
  for (size_t i = 1; i < wanted.size(); ++i) {
    threads.emplace_back([&, i] {
      engines[i] = sglang::NewSglangEngine(wanted[i], [](std::string_view, double) {});
    });
  }
  engines[0] = sglang::NewSglangEngine(wanted[0], progress);
  for (std::thread& thread : threads) thread.join();
  return engines;
}

}  // namespace

std::vector<std::string> GpuFlags(const std::vector<std::string>& flags, int index) {
  if (ValueOf(flags, {"--device"}) == "cpu") return {};
  const int each = NumberOf(flags, {"--tp-size", "--tp", "--tensor-parallel-size"}, 1) *
                   NumberOf(flags, {"--pp-size", "--pipeline-parallel-size"}, 1) *
                   NumberOf(flags, {"--dp-size", "--dp", "--data-parallel-size"}, 1);
  const int first = NumberOf(flags, {"--base-gpu-id"}, 0);
  return {"--base-gpu-id", std::to_string(first + index * each)};
}

StatusOr<EnginePtr> MakeSglangEngine(const ModelOptions& options, const std::string& path,
                                     const SharedResources& shared, const LoadProgress& progress) {
  sglang::SglangOptions each;
  each.python = options.sglang_python;
  each.script = options.sglang_launcher;
  each.restart = options.restart_engine;
  each.media_helpers = options.sglang_media_helpers;
  each.max_queued_requests = options.max_queued_requests;
  each.reasoning_parser = options.reasoning_parser;
  each.transport = options.sglang_transport;
  each.hand_over_wait = shared.drain_time + kTimeToStop;
  const std::vector<std::string> files = AttachFiles(options);
  if (!files.empty() && options.sglang_replicas > 1) {
    return Error(StatusCode::kInvalidArgument,
                 "--sglang-replicas starts engines, --attach joins those that its files name");
  }
  PORTICO_RETURN_IF_ERROR(CheckTransport(options));
  if (files.empty() && each.script.empty()) {
    PORTICO_ASSIGN_OR_RETURN(each.script, SglangLauncherPath());
  }
  each.flags = SglangFlags(options, path);
  if (options.return_original_logprob) {
    each.environment.push_back("SGLANG_RETURN_ORIGINAL_LOGPROB=1");
  }
  if (!files.empty() &&
      (options.return_original_logprob || options.enable_deterministic_inference)) {
    LogWarning("{} has no effect with --attach: start SGLang with it",
               options.return_original_logprob ? "--return-original-logprob"
                                               : "--enable-deterministic-inference");
  }
  std::vector<sglang::SglangOptions> wanted;
  for (const std::string& file : files) {
    wanted.push_back(each);
    wanted.back().attach_file = file;
  }
  const int replicas = files.empty() ? options.sglang_replicas : 0;
  for (int i = 0; i < replicas; ++i) {
    wanted.push_back(each);
    if (i == 0) continue;
    const std::vector<std::string> gpus = GpuFlags(each.flags, i);
    wanted.back().flags.insert(wanted.back().flags.end(), gpus.begin(), gpus.end());
  }
  if (wanted.size() == 1) return sglang::NewSglangEngine(wanted.front(), progress);
  PORTICO_ASSIGN_OR_RETURN(std::shared_ptr<router::Policy> policy,
                           router::MakePolicy(options.policy, {}));
  std::vector<EnginePtr> engines;
  for (StatusOr<EnginePtr>& engine : StartAll(wanted, progress)) {
    PORTICO_RETURN_IF_ERROR(engine.status());
    engines.push_back(*std::move(engine));
  }
  LogInfo("{} SGLang engines, policy {}", engines.size(), options.policy);
  const int shards = std::max(1, static_cast<int>(shared.shards.size()));
  return router::LocalFleet::MakeEngine(std::move(engines), std::move(policy), shards);
}

}  // namespace portico
