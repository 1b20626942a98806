#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

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
    {"portico_gateway_worker_paused", "gauge",
     "1 if its engine has been told to pause, as far as this gateway knows.",
     [](const Worker& worker) { return worker.paused() ? 1.0 : 0.0; }},
    {"portico_gateway_worker_breaker", "gauge", "Circuit breaker: 0 closed, 1 half-open, 2 open.",
     [](const Worker& worker) { return static_cast<double>(worker.breaker().state()); }},
    {"portico_gateway_worker_breaker_opened_total", "counter", "How often it has opened.",
     [](const Worker& worker) { return static_cast<double>(worker.breaker().opened()); }},
    {"portico_gateway_worker_requests", "gauge", "Requests in flight on the worker.",
     [](const Worker& worker) { return static_cast<double>(worker.requests()); }},
    {"portico_gateway_worker_prefill_tokens", "gauge",
     "Prompt tokens, estimated, of requests that have had no answer yet.",
     [](const Worker& worker) { return static_cast<double>(worker.tokens()); }},
    {"portico_gateway_worker_requests_total", "counter", "Requests sent to the worker.",
     [](const Worker& worker) { return static_cast<double>(worker.total_requests()); }},
    {"portico_gateway_worker_retries_total", "counter",
     "Requests that were sent once more because this worker had failed them.",
     [](const Worker& worker) { return static_cast<double>(worker.retries()); }},
};

constexpr std::string_view kWorkerInfo = "portico_gateway_worker_info";
constexpr std::string_view kWorkerFailures = "portico_gateway_worker_failures_total";
constexpr std::string_view kWorkerMalformed = "portico_gateway_worker_malformed_total";

struct GroupMetric {
  std::string_view name;
  std::string_view kind;
  std::string_view help;
  double (*value)(const router::WorkerGroup&);
};

double CountOf(const std::atomic<uint64_t>& count) {
  return static_cast<double>(count.load(std::memory_order_relaxed));
}

// 1: all have as many.
double ImbalanceOf(const router::WorkerGroup& group) {
  int64_t most = 0, all = 0;
  for (const Worker* worker : group.workers) {
    most = std::max(most, worker->requests());
    all += worker->requests();
  }
  if (all == 0) return 0;
  return static_cast<double>(most) * static_cast<double>(group.workers.size()) /
         static_cast<double>(all);
}

constexpr GroupMetric kGroupMetrics[] = {
    {"portico_gateway_policy_choices_total", "counter", "Attempts for which a worker was chosen.",
     [](const router::WorkerGroup& group) { return CountOf(group.policy->counts().choices); }},
    {"portico_gateway_policy_prompt_tokens_total", "counter",
     "Prompt tokens of these attempts, estimated for HTTP workers.",
     [](const router::WorkerGroup& group) {
       return CountOf(group.policy->counts().prompt_tokens);
     }},
    {"portico_gateway_policy_matched_tokens_total", "counter",
     "Of these the policy (cost, cache_aware) believed to be cached on the worker.",
     [](const router::WorkerGroup& group) {
       return CountOf(group.policy->counts().matched_tokens);
     }},
    {"portico_gateway_policy_imbalance", "gauge",
     "Requests in flight on the busiest worker relative to the mean; 0 without requests.",
     ImbalanceOf},
};

// A label's value (exposition format 0.0.4); a model's name is the worker's text.
std::string LabelText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped.push_back('\\');
    c == '\n' ? escaped.append("\\n") : escaped.append(1, c);
  }
  return escaped;
}

void AppendGroupMetrics(const router::WorkerSet& set, std::string* out) {
  auto to = std::back_inserter(*out);
  for (const GroupMetric& metric : kGroupMetrics) {
    fmt::format_to(to, "# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name,
                   metric.kind);
    for (const router::Role role : router::kRoles) {
      for (const router::WorkerGroup* group : set.groups(role)) {
        fmt::format_to(to, "{}{{policy=\"{}\",role=\"{}\",model=\"{}\"}} {}\n", metric.name,
                       group->policy->name(), router::RoleName(role), LabelText(group->model),
                       metric.value(*group));
      }
    }
  }
}

// Joined with the other metrics by `worker`. Whoever reads metrics needs no key: addresses are there only if clients may see
// them as well.
void AppendWorkerInfo(const router::WorkerSet& set, bool urls, std::string* out) {
  auto to = std::back_inserter(*out);
  fmt::format_to(
      to,
      "# HELP {0} 1, with the role of the worker, its first model and, with --show-workers, its "
      "URL.\n# TYPE {0} gauge\n",
      kWorkerInfo);
  for (const auto& worker : set.workers()) {
    const std::vector<std::string> models = worker->models();
    fmt::format_to(to, "{}{{worker=\"{}\",role=\"{}\",model=\"{}\"", kWorkerInfo, worker->id(),
                   router::RoleName(worker->spec().role),
                   models.empty() ? std::string() : LabelText(models.front()));
    if (urls) fmt::format_to(to, ",url=\"{}\"", LabelText(worker->url()));
    fmt::format_to(to, "}} 1\n");
  }
}

void AppendWorkerFailures(const router::WorkerSet& set, std::string* out) {
  auto to = std::back_inserter(*out);
  fmt::format_to(to, "# HELP {0} Attempts on the worker that failed.\n# TYPE {0} counter\n",
                 kWorkerFailures);
  for (const auto& worker : set.workers()) {
    for (const router::AttemptFailure kind : router::kAttemptFailures) {
      fmt::format_to(to, "{}{{worker=\"{}\",kind=\"{}\"}} {}\n", kWorkerFailures, worker->id(),
                     router::AttemptFailureName(kind), worker->failures(kind));
    }
  }
}

void AppendWorkerMalformed(const router::WorkerSet& set, std::string* out) {
  auto to = std::back_inserter(*out);
  fmt::format_to(to,
                 "# HELP {0} Answers of the worker that break its protocol: to requests, and to "
                 "/v1/models.\n# TYPE {0} counter\n",
                 kWorkerMalformed);
  for (const auto& worker : set.workers()) {
    for (const router::Malformed kind : router::kMalformedKinds) {
      fmt::format_to(to, "{}{{worker=\"{}\",kind=\"{}\"}} {}\n", kWorkerMalformed, worker->id(),
                     router::MalformedName(kind), worker->malformed(kind));
    }
  }
}

}  // namespace

void AppendWorkerMetrics(router::Gateway& gateway, std::string* out) {
  const auto set = gateway.workers().set();
  AppendWorkerInfo(*set, gateway.options().show_workers, out);
  auto to = std::back_inserter(*out);
  for (const WorkerMetric& metric : kMetrics) {
    fmt::format_to(to, "# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name,
                   metric.kind);
    for (const auto& worker : set->workers()) {
      fmt::format_to(to, "{}{{worker=\"{}\"}} {}\n", metric.name, worker->id(),
                     metric.value(*worker));
    }
  }
  AppendWorkerFailures(*set, out);
  AppendWorkerMalformed(*set, out);
  AppendGroupMetrics(*set, out);
  fmt::format_to(to,
                 "# HELP portico_gateway_queued Requests waiting in the queue.\n"
                 "# TYPE portico_gateway_queued gauge\nportico_gateway_queued {}\n",
                 gateway.queued());
}

}  // namespace portico::api
