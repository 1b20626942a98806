#include "app/load/sglang_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
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
#include "text/json.h"

namespace portico {
namespace {

using EnginePtr = std::unique_ptr<Engine>;

// What a front end needs after its requests have ended.
constexpr std::chrono::seconds kTimeToStop{10};
constexpr int64_t kMostReplicas = 64;  // as --sglang-replicas has it

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

// The port of a TCP endpoint.
std::optional<int> PortOf(const std::string& endpoint) {
  int port = 0;
  if (!endpoint.starts_with("tcp://") ||
      !absl::SimpleAtoi(endpoint.substr(endpoint.rfind(':') + 1), &port)) {
    return std::nullopt;
  }
  return port;
}

// How far the ports of one replica are from those of the one before it. SGLang's own ranks have ports one after the other, from
// each of the two on; replay_endpoint usually is the port behind endpoint.
int64_t PortStep(const Json& events, int ranks) {
  const auto first = PortOf(events.GetString("endpoint"));
  const auto replay = PortOf(events.GetString("replay_endpoint"));
  if (!first || !replay) return ranks;
  const int64_t apart = std::abs(int64_t{*first} - *replay);
  return apart < kMostReplicas * ranks ? apart + ranks : ranks;
}

std::string ReplicaEndpoint(const std::string& endpoint, int index, int64_t step) {
  if (endpoint.starts_with("ipc://")) return fmt::format("{}-{}", endpoint, index);
  const auto port = PortOf(endpoint);
  if (!port) return endpoint;
  return fmt::format("{}:{}", endpoint.substr(0, endpoint.rfind(':')), *port + index * step);
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

// Starts them at the same time: each reads the same weights, and most of it is waiting. The first that fails, *culprit,
// ends the others' wait for sockets, and its error is the result.
StatusOr<std::vector<EnginePtr>> StartAll(std::vector<sglang::SglangOptions> wanted,
                                          const LoadProgress& progress, size_t* culprit) {
  std::stop_source failed;
  std::vector<StatusOr<EnginePtr>> started(wanted.size());
  const auto start = [&](size_t i, const LoadProgress& told) {
    wanted[i].give_up = failed.get_token();
    started[i] = sglang::NewSglangEngine(wanted[i], told);
    if (!started[i].ok() && failed.request_stop()) *culprit = i;
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < wanted.size(); ++i) {
    threads.emplace_back([&start, i] { start(i, [](std::string_view, double) {}); });
  }
  start(0, progress);
  for (std::thread& thread : threads) thread.join();
  if (failed.stop_requested()) return started[*culprit].status();
  std::vector<EnginePtr> engines;
  for (StatusOr<EnginePtr>& engine : started) engines.push_back(*std::move(engine));
  return engines;
}

// What is to be started or joined for one model.
StatusOr<std::vector<sglang::SglangOptions>> EnginesOf(const ModelOptions& options,
                                                       const std::string& path,
                                                       const SharedResources& shared) {
  sglang::SglangOptions each;
  each.python = options.sglang_python;
  each.script = options.sglang_launcher;
  each.restart = options.restart_engine;
  each.media_helpers = options.sglang_media_helpers;
  each.max_queued_requests = options.max_queued_requests;
  each.reasoning_parser = options.reasoning_parser;
  each.transport = options.sglang_transport;
  each.tokenizer_path = options.tokenizer_path;
  each.front_end_has = options.engine_options_taken;
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
    const std::vector<std::string> own = ReplicaFlags(each.flags, i);
    wanted.back().flags.insert(wanted.back().flags.end(), own.begin(), own.end());
  }
  return wanted;
}

// Of one model: itself, or several behind a policy.
StatusOr<EnginePtr> OneOf(std::vector<EnginePtr> engines, const ModelOptions& options,
                          const SharedResources& shared) {
  if (engines.size() == 1) return std::move(engines.front());
  PORTICO_ASSIGN_OR_RETURN(std::shared_ptr<router::Policy> policy,
                           router::MakePolicy(options.policy, {}));
  LogInfo("{} SGLang engines, policy {}", engines.size(), options.policy);
  const int shards = std::max(1, static_cast<int>(shared.shards.size()));
  return router::LocalFleet::MakeEngine(std::move(engines), std::move(policy), shards);
}

bool Joins(const ModelOptions& model) {
  return model.engine == "sglang" && !AttachFiles(model).empty();
}

}  // namespace

std::vector<std::string> ReplicaFlags(const std::vector<std::string>& flags, int index) {
  std::vector<std::string> own;
  const int ranks = NumberOf(flags, {"--dp-size", "--dp", "--data-parallel-size"}, 1);
  if (ValueOf(flags, {"--device"}) != "cpu") {
    const int each = NumberOf(flags, {"--tp-size", "--tp", "--tensor-parallel-size"}, 1) *
                     NumberOf(flags, {"--pp-size", "--pipeline-parallel-size"}, 1) * ranks;
    const int first = NumberOf(flags, {"--base-gpu-id"}, 0);
    own = {"--base-gpu-id", std::to_string(first + index * each)};
  }
  auto events = Json::Parse(ValueOf(flags, {"--kv-events-config"}));
  if (!events.ok() || !events->is_object()) return own;
  if (events->Find("endpoint") == nullptr) events->Set("endpoint", Json("tcp://*:5557"));
  const int64_t step = PortStep(*events, ranks);
  for (const char* name : {"endpoint", "replay_endpoint"}) {
    const std::string endpoint = events->GetString(name);
    if (!endpoint.empty()) events->Set(name, Json(ReplicaEndpoint(endpoint, index, step)));
  }
  own.insert(own.end(), {"--kv-events-config", events->Dump()});
  return own;
}

StatusOr<EnginePtr> MakeSglangEngine(const ModelOptions& options, const std::string& path,
                                     const SharedResources& shared, const LoadProgress& progress) {
  PORTICO_ASSIGN_OR_RETURN(std::vector<sglang::SglangOptions> wanted,
                           EnginesOf(options, path, shared));
  size_t culprit = 0;
  PORTICO_ASSIGN_OR_RETURN(std::vector<EnginePtr> engines,
                           StartAll(std::move(wanted), progress, &culprit));
  return OneOf(std::move(engines), options, shared);
}

StatusOr<std::vector<EnginePtr>> JoinSglangEngines(const std::vector<ModelOptions>& models,
                                                   const SharedResources& shared,
                                                   const LoadProgress& progress) {
  std::vector<EnginePtr> joined(models.size());
  if (std::count_if(models.begin(), models.end(), Joins) < 2) return joined;
  std::vector<sglang::SglangOptions> wanted;
  std::vector<size_t> model_of;
  for (size_t i = 0; i < models.size(); ++i) {
    if (!Joins(models[i])) continue;
    PORTICO_ASSIGN_OR_RETURN(auto engines, EnginesOf(models[i], models[i].model_path, shared));
    wanted.insert(wanted.end(), engines.begin(), engines.end());
    model_of.insert(model_of.end(), engines.size(), i);
  }
  size_t culprit = 0;
  auto started = StartAll(std::move(wanted), progress, &culprit);
  if (!started.ok()) {
    return Error(started.status().code(),
                 fmt::format("model `{}`: {}", ModelId(models[model_of[culprit]]),
                             MessageOf(started.status())));
  }
  std::vector<std::vector<EnginePtr>> by_model(models.size());
  for (size_t i = 0; i < started->size(); ++i) {
    by_model[model_of[i]].push_back(std::move((*started)[i]));
  }
  for (size_t i = 0; i < models.size(); ++i) {
    if (by_model[i].empty()) continue;
    PORTICO_ASSIGN_OR_RETURN(joined[i], OneOf(std::move(by_model[i]), models[i], shared));
  }
  return joined;
}

}  // namespace portico
