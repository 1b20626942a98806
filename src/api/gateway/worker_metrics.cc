#include <fmt/format.h>

#include <iterator>

#include "api/gateway/worker_routes.h"

namespace portico::api {
namespace {

using router::Worker;

struct WorkerMetric {
  std::string_view name;
  std::string_view kind;
  std::string_view help;
  double (*value)(const Worker&);
};

constexpr WorkerMetric kMetrics[] = {
    {"portico_gateway_worker_healthy", "gauge", "1 if the worker is healthy.",
     [](const Worker& worker) { return worker.health() == router::Health::kHealthy ? 1.0 : 0.0; }},
    {"portico_gateway_worker_draining", "gauge", "1 if the worker gets no new requests.",
     [](const Worker& worker) { return worker.draining() ? 1.0 : 0.0; }},
    {"portico_gateway_worker_breaker", "gauge", "Circuit breaker: 0 closed, 1 half-open, 2 open.",
     [](const Worker& worker) { return static_cast<double>(worker.breaker().state()); }},
    {"portico_gateway_worker_breaker_opened_total", "counter", "How often it has opened.",
     [](const Worker& worker) { return static_cast<double>(worker.breaker().opened()); }},
    {"portico_gateway_worker_requests", "gauge", "Requests in flight on the worker.",
     [](const Worker& worker) { return static_cast<double>(worker.requests()); }},
    {"portico_gateway_worker_prefill_tokens", "gauge",
     "Prompt tokens, estimated, of requests that have had no answer yet.",
     [](const Worker& worker) { return static_cast<double>(worker.tokens()); }},
    {"portico_gateway_worker_requests_total", "counter", "Requests that the worker was given.",
     [](const Worker& worker) { return static_cast<double>(worker.total_requests()); }},
};

}  // namespace

void AppendWorkerMetrics(router::Gateway& gateway, std::string* out) {
  const auto set = gateway.workers().set();
  auto to = std::back_inserter(*out);
  for (const WorkerMetric& metric : kMetrics) {
    fmt::format_to(to, "# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name,
                   metric.kind);
    for (const auto& worker : set->workers()) {
      fmt::format_to(to, "{}{{worker=\"{}\"}} {}\n", metric.name, worker->id(),
                     metric.value(*worker));
    }
  }
  fmt::format_to(to,
                 "# HELP portico_gateway_queued Requests that wait for a place.\n"
                 "# TYPE portico_gateway_queued gauge\nportico_gateway_queued {}\n",
                 gateway.queued());
}

}  // namespace portico::api
