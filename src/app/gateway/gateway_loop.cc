#include "app/gateway/gateway_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <iterator>
#include <optional>
#include <utility>

#include "app/command_tools.h"
#include "app/gateway/gateway_service.h"
#include "app/gateway/worker_file.h"
#include "app/options/route_options_table.h"
#include "base/counted.h"
#include "base/events/recorder.h"
#include "base/log.h"

namespace portico {
namespace {

constexpr timespec kLook{0, 200'000'000};
constexpr Duration kFirstProgress = std::chrono::seconds(2);
constexpr Duration kProgress = std::chrono::seconds(10);
// Less is no news: one lost connection takes a worker out until it has answered a probe.
constexpr Duration kLapse = std::chrono::seconds(1);

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Whether Reload() brings the gateway in line with the option.
bool IsReloaded(const RouteOption& option) {
  constexpr std::string_view kNames[] = {"worker-urls",
                                         "prefill",
                                         "decode",
                                         "aliases",
                                         "prefill-policy",
                                         "decode-policy",
                                         "mini-lb",
                                         "max-concurrent-requests",
                                         "queue-size",
                                         "rate-limit-tokens-per-second",
                                         "worker-max-requests"};
  return option.group == "Policy" ||
         std::find(std::begin(kNames), std::end(kNames), option.name) != std::end(kNames);
}

// Names what has another value than at the start, and keeps that one until a restart.
void WarnOfRestart(const RouteOptions& start, const RouteOptions& now, std::string_view prefix) {
  std::string changed;
  for (const RouteOption& option : RouteOptionTable()) {
    if (IsReloaded(option) || RouteOptionText(option, start) == RouteOptionText(option, now)) {
      continue;
    }
    changed += fmt::format("{}--{}{}", changed.empty() ? "" : ", ", prefix, option.name);
  }
  if (!changed.empty()) LogWarning("reload: takes effect after a restart only: {}", changed);
}

// Reads flags and file again and brings the workers in line with them. What is wrong leaves all as
// it was.
void Reload(const RouteOptions& start, const std::vector<std::string>& words,
            std::string_view prefix, GatewayService& service) {
  auto parsed = ParseRouteOptions(words, prefix);
  if (!parsed.ok()) {
    return LogError("reload: {}; nothing was changed", MessageOf(parsed.status()));
  }
  if (!start.started_workers.empty()) {
    AddStarted(start.worker_key, start.started_workers, &parsed->options);
  }
  const auto wanted = WorkersOf(parsed->options);
  const auto options = ServiceOptionsOf(parsed->options);
  if (!wanted.ok() || !options.ok()) return;  // ParseRouteOptions() has looked
  const auto [added, removed] = service.gateway().ReplaceWorkers(*wanted);
  const bool policy = service.gateway().ReplacePolicy(options->gateway.policy);
  const bool limits = service.gateway().ReplaceLimits(options->gateway.admission,
                                                      options->gateway.worker_max_requests);
  const bool aliases = service.gateway().workers().SetAliases(options->gateway.aliases);
  LogInfo("reload: {} added, {} removed{}{}{}", Counted(added, "worker"), removed,
          limits ? ", limits changed" : "", aliases ? ", aliases changed" : "",
          policy ? ", policy " + options->gateway.policy.regular : "");
  WarnOfRestart(start, parsed->options, prefix);
}

// What has been said of whether a worker can take a request.
struct SaidReady {
  bool ever = false;
  bool now = false;
  TimePoint lost_at{};  // epoch: it is as it has been said
};

// Says when that changes.
void SayReadiness(const RouteOptions& options, GatewayService& service, SaidReady* said) {
  const Status ready = service.gateway().Ready();
  if (ready.ok()) {
    said->lost_at = {};
    if (std::exchange(said->now, true)) return;
    said->ever = true;
    return LogInfo("ready: {}://{}/v1", options.tls_cert_path.empty() ? "http" : "https",
                   AddressOf(options.host, service.port()));
  }
  if (!said->now) return;
  const TimePoint now = Clock::now();
  if (said->lost_at == TimePoint{}) said->lost_at = now;
  if (now - said->lost_at < kLapse) return;
  said->now = false;
  LogWarning("not ready: {}", MessageOf(ready));
}

// Now and then, while no worker can take a request.
void SayProgress(GatewayService& service, bool discovers, TimePoint started, TimePoint* next) {
  const TimePoint now = Clock::now();
  if (now < *next) return;
  *next = now + kProgress;
  const router::WorkerSetPtr set = service.gateway().workers().set();
  if (set->workers().empty()) {
    LogInfo("waiting for workers: there are none after {:.0f} s; {}", Seconds(now - started),
            discovers ? "discovery has not found any" : "POST /workers adds one");
    return;
  }
  const auto healthy = std::count_if(
      set->workers().begin(), set->workers().end(),
      [](const auto& worker) { return worker->health() == router::Health::kHealthy; });
  // Healthy ones may not be enough: of pairs one of each role is needed.
  const Status ready = service.gateway().Ready();
  const bool why = healthy > 0 && !ready.ok();
  LogInfo("waiting for workers: {} of {} are healthy after {:.0f} s{}{}", healthy,
          set->workers().size(), Seconds(now - started), why ? "; " : "",
          why ? MessageOf(ready) : std::string_view());
}

// A worker that has no requests would count as healthy until its next probe, if there are probes.
void NoteEnded(const std::string& url, router::Gateway& gateway) {
  const router::WorkerSetPtr set = gateway.workers().set();
  for (const router::WorkerPtr& worker : set->workers()) {
    if (router::ServerUrl(worker->spec()) == url) gateway.NoteProcess(*worker, false);
  }
}

// Workers may be others than at the last time: a reload and the ranks of a server make new ones.
void NoteProcesses(const WorkerProcesses& processes, router::Gateway& gateway) {
  const router::WorkerSetPtr set = gateway.workers().set();
  for (const router::WorkerPtr& worker : set->workers()) {
    const auto runs = processes.Runs(router::ServerUrl(worker->spec()));
    if (runs.has_value()) gateway.NoteProcess(*worker, *runs);
  }
}

}  // namespace

Status RunGateway(const RouteOptions& options, const std::vector<std::string>* words,
                  std::string_view prefix, const sigset_t& signals, WorkerProcesses* processes) {
  auto service_options = ServiceOptionsOf(options);
  if (!service_options.ok()) return service_options.status();
  service_options->gateway.health.starts_workers = processes != nullptr;
  const auto workers = WorkersOf(options);
  if (!workers.ok()) return workers.status();
  auto service = GatewayService::Start(*std::move(service_options));
  if (!service.ok()) return service.status();
  for (const router::WorkerSpec& spec : *workers) {
    const auto added = (*service)->gateway().AddWorker(spec);
    if (!added.ok()) return added.status();
  }
  LogInfo("listening on {}, {}, policy {}", AddressOf(options.host, (*service)->port()),
          Counted(static_cast<int64_t>(workers->size()), "worker"), options.policy);
  const bool discovers = options.service_discovery || !options.discovery_file.empty();
  if (workers->empty() && !discovers) {
    LogWarning(
        "there are no workers: requests are refused until POST /workers adds one "
        "(--{}worker-urls and --{}config name workers at the start)",
        prefix, prefix);
  }
  const TimePoint started = Clock::now();
  const Duration patience = FromSeconds(options.worker_startup_timeout_secs);
  TimePoint progress = started + kFirstProgress;
  SaidReady ready;
  std::optional<WorkerFile> file;
  if (!options.discovery_file.empty()) {
    file.emplace(options.discovery_file, FromSeconds(options.discovery_check_interval_secs));
  }
  while (true) {
    if (file.has_value()) file->Tick((*service)->gateway());
    const int signal = sigtimedwait(&signals, nullptr, &kLook);
    if (signal == SIGINT || signal == SIGTERM || (signal == SIGHUP && words == nullptr)) break;
    if (signal == SIGHUP) Reload(options, *words, prefix, **service);
    if (processes != nullptr) {
      PORTICO_RETURN_IF_ERROR(
          processes->Tick([&](const std::string& url) { NoteEnded(url, (*service)->gateway()); }));
      NoteProcesses(*processes, (*service)->gateway());
    }
    SayReadiness(options, **service, &ready);
    if (!ready.ever) SayProgress(**service, discovers, started, &progress);
    if (!ready.ever && !workers->empty() && patience > Duration::zero() &&
        Clock::now() - started > patience) {
      return Error(StatusCode::kDeadlineExceeded,
                   fmt::format("no worker has become healthy within {:.0f} s",
                               options.worker_startup_timeout_secs));
    }
  }
  LogInfo("draining: requests in flight may finish for {:.0f} s; once more to stop now",
          options.shutdown_grace_period_secs);
  // To the end: the lines of a profile may take long, too.
  const SecondSignal second(signals, /*hangup_ends=*/words == nullptr);
  const bool finished = (*service)->Drain(FromSeconds(options.shutdown_grace_period_secs));
  service->reset();
  events::Shutdown();
  LogInfo("stopped{}", finished ? "" : "; some requests were cut off");
  return OkStatus();
}

}  // namespace portico
