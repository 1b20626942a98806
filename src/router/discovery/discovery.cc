#include "router/discovery/discovery.h"

#include <fmt/format.h>

#include <future>
#include <utility>

#include "base/counted.h"
#include "base/log.h"

namespace portico::router {

Discovery::Discovery(Gateway& gateway, DiscoveryOptions options)
    : gateway_(gateway),
      options_(std::move(options)),
      failures_(gateway.metrics().registry.AddCounter(
          "portico_gateway_discovery_failures_total",
          "Requests to the Kubernetes API server that failed.")),
      pods_(gateway.metrics().registry.AddGauge("portico_gateway_discovery_pods",
                                                "Pods that are selected, ready or not.")) {}

StatusOr<std::unique_ptr<Discovery>> Discovery::Start(Gateway& gateway, DiscoveryOptions options) {
  std::unique_ptr<Discovery> made(new Discovery(gateway, std::move(options)));
  PORTICO_ASSIGN_OR_RETURN(made->tls_,
                           net::TlsClientContext::Load({.ca_file = made->options_.cluster.ca_file,
                                                        .protocol = net::TlsProtocol::kHttp1}));
  gateway.admin().Post([self = made.get()] { self->Begin(); });
  return made;
}

Discovery::~Discovery() {
  std::promise<void> done;
  gateway_.admin().Post([&] {
    watched_.clear();
    client_.reset();
    done.set_value();
  });
  done.get_future().wait();
}

void Discovery::Begin() {
  const ClusterOptions& cluster = options_.cluster;
  client_ = std::make_unique<net::Http1Client>(
      gateway_.admin(),
      net::ClientTarget{
          .host = cluster.host, .port = cluster.port, .tls = tls_.get(), .tls_name = cluster.host},
      net::Http1ClientOptions{.max_idle = 4});
  for (const auto& [role, selector] : options_.selected) {
    watched_.push_back({role, std::make_unique<PodWatch>(
                                  gateway_.admin(), *client_, cluster,
                                  PodWatchOptions{.space = options_.space, .selector = selector},
                                  [this] { OnChange(); }, [this] { failures_.Add(); })});
  }
  for (const Watched& one : watched_) one.watch->Start();
}

std::optional<WorkerSpec> Discovery::SpecOf(const Pod& pod, Role role) const {
  if (pod.ip.empty()) return std::nullopt;
  const bool ipv6 = pod.ip.find(':') != std::string::npos;
  auto spec = ParseWorkerUrl(
      fmt::format("http://{}{}{}:{}", ipv6 ? "[" : "", pod.ip, ipv6 ? "]" : "", options_.port));
  if (!spec.ok()) return std::nullopt;
  spec->role = role;
  if (role == Role::kPrefill) spec->bootstrap_port = pod.bootstrap_port;
  spec->labels = {{"namespace", pod.space}, {"pod", pod.name}, {"pod-uid", pod.uid}};
  return *std::move(spec);
}

void Discovery::OnChange() {
  std::vector<WorkerSpec> wanted;
  size_t pods = 0;
  // Half of what there is would take workers out that are well.
  for (const Watched& one : watched_) {
    if (!one.watch->listed()) return;
    pods += one.watch->pods().size();
    for (const auto& [uid, pod] : one.watch->pods()) {
      if (!pod.ready || pod.leaving) continue;
      if (auto spec = SpecOf(pod, one.role)) wanted.push_back(*std::move(spec));
    }
  }
  // Of pods that leave, those that are workers stay until they are gone.
  const WorkerSetPtr before = gateway_.workers().set();
  for (const Watched& one : watched_) {
    for (const auto& [uid, pod] : one.watch->pods()) {
      auto spec = pod.leaving ? SpecOf(pod, one.role) : std::nullopt;
      if (!spec.has_value()) continue;
      for (const WorkerPtr& worker : before->workers()) {
        if (worker->spec().source != Source::kDiscovery || ServerUrl(worker->spec()) != spec->url ||
            worker->spec().labels != spec->labels) {
          continue;
        }
        if (!worker->draining()) {
          LogInfo("worker {} {} drains: its pod is being deleted", worker->id(), worker->url());
          worker->SetDraining(true);
        }
        wanted.push_back(*spec);
      }
    }
  }
  pods_.Set(static_cast<double>(pods));
  const auto [added, removed] = gateway_.ReplaceWorkers(wanted, Source::kDiscovery);
  if (added + removed > 0) {
    LogInfo("Kubernetes: {} added, {} removed", Counted(added, "worker"), removed);
  }
}

}  // namespace portico::router
