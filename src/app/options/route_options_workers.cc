// Which workers the options of `portico route` name, and what they must have together.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "app/options/route_options.h"

namespace portico {
namespace {

Status BadWorkerFlag(std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message));
}

// Half of a pair alone can do nothing. None at all may be added later, and discovery finds the rest.
Status CheckBothRoles(const RouteOptions& options, const std::vector<router::WorkerSpec>& specs) {
  const bool discovers = options.service_discovery || !options.discovery_file.empty();
  if (!options.pd_disaggregation || specs.empty() || discovers) return OkStatus();
  for (const router::Role role : {router::Role::kPrefill, router::Role::kDecode}) {
    const bool some = std::any_of(specs.begin(), specs.end(),
                                  [role](const auto& spec) { return spec.role == role; });
    if (some) continue;
    return BadWorkerFlag(fmt::format(
        "--pd-disaggregation: no {0} worker is named: --{0} URL, or `role: {0}` in the file",
        RoleName(role)));
  }
  return OkStatus();
}

// --prefill and --decode, and what must go with them.
Status AddPairs(const RouteOptions& options, std::vector<router::WorkerSpec>* specs) {
  router::WorkerSpec* last = nullptr;  // a prefill worker that may still name its port
  for (const std::string& word : options.prefill) {
    int port = 0;
    if (word == "none" || absl::SimpleAtoi(word, &port)) {
      if (last == nullptr)
        return BadWorkerFlag(fmt::format("--prefill: `{}` follows no URL", word));
      const Status set = SetBootstrapPort(word, last);
      if (!set.ok()) return BadWorkerFlag(fmt::format("--prefill: {}", MessageOf(set)));
      last = nullptr;
      continue;
    }
    auto spec = router::ParseWorkerUrl(word);
    if (!spec.ok()) return BadWorkerFlag(fmt::format("--prefill: {}", MessageOf(spec.status())));
    spec->role = router::Role::kPrefill;
    specs->push_back(*std::move(spec));
    last = &specs->back();
  }
  for (const std::string& url : options.decode) {
    auto spec = router::ParseWorkerUrl(url);
    if (!spec.ok()) return BadWorkerFlag(fmt::format("--decode: {}", MessageOf(spec.status())));
    spec->role = router::Role::kDecode;
    specs->push_back(*std::move(spec));
  }
  for (const router::WorkerSpec& spec : *specs) {
    const bool regular = spec.role == router::Role::kRegular;
    if (regular && options.pd_disaggregation) {
      return BadWorkerFlag(fmt::format(
          "worker {}: --pd-disaggregation takes --prefill and --decode, or `role` in the file",
          spec.url));
    }
    if (!regular && !options.pd_disaggregation) {
      return BadWorkerFlag(fmt::format("worker {}: {} workers need --pd-disaggregation", spec.url,
                                       RoleName(spec.role)));
    }
    if (regular) continue;
    PORTICO_RETURN_IF_ERROR(router::CheckPairWorker(spec, options.dp_aware));
    if (!router::MakePairs(specs->front(), spec)) {
      return BadWorkerFlag(fmt::format(
          "workers {} and {}: prefill and decode workers are either all of HTTP or all of gRPC",
          specs->front().url, spec.url));
    }
  }
  return CheckBothRoles(options, *specs);
}

}  // namespace

Status SetRole(const std::string& name, router::WorkerSpec* spec) {
  for (const router::Role role : router::kRoles) {
    if (name != RoleName(role)) continue;
    spec->role = role;
    return OkStatus();
  }
  return BadWorkerFlag(fmt::format("the role `{}` is not regular, prefill or decode", name));
}

Status SetBootstrapPort(const std::string& text, router::WorkerSpec* spec) {
  spec->bootstrap_port = 0;
  if (text == "none") return OkStatus();
  if (!absl::SimpleAtoi(text, &spec->bootstrap_port) || spec->bootstrap_port < 1 ||
      spec->bootstrap_port > 65535) {
    return BadWorkerFlag(fmt::format("the bootstrap port `{}` is not in 1..65535, or none", text));
  }
  return OkStatus();
}

void AddStarted(std::string worker_key, std::vector<std::string> urls, RouteOptions* options) {
  options->keeps_key = !options->key_given;
  if (options->keeps_key && !worker_key.empty()) options->api_key = worker_key;
  options->worker_key = std::move(worker_key);
  options->started_workers = std::move(urls);
}

StatusOr<std::vector<router::WorkerSpec>> WorkersOf(const RouteOptions& options) {
  std::vector<router::WorkerSpec> specs = options.workers;
  for (const std::string& url : options.worker_urls) {
    auto spec = router::ParseWorkerUrl(url);
    if (!spec.ok())
      return BadWorkerFlag(fmt::format("--worker-urls: {}", MessageOf(spec.status())));
    const auto& started = options.started_workers;
    if (std::find(started.begin(), started.end(), url) != started.end()) {
      spec->api_key = options.worker_key;
    }
    specs.push_back(*std::move(spec));
  }
  PORTICO_RETURN_IF_ERROR(AddPairs(options, &specs));
  std::vector<router::WorkerSpec> once;
  for (router::WorkerSpec& spec : specs) {
    const bool there = std::any_of(once.begin(), once.end(), [&](const router::WorkerSpec& other) {
      return other.host == spec.host && other.port == spec.port &&
             other.path_prefix == spec.path_prefix;
    });
    if (there) return BadWorkerFlag(fmt::format("worker {} is named twice", spec.url));
    once.push_back(std::move(spec));
  }
  return once;
}

}  // namespace portico
