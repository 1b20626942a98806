#include "router/gateway_metrics.h"

#include <string>

namespace portico::router {
namespace {

constexpr const char* kFailures = "portico_gateway_attempt_failures_total";
constexpr const char* kFailuresHelp =
    "Attempts that failed: no connection, connection lost, answer malformed, status 5xx or 429, "
    "worker stalled.";

std::vector<double> BoundsOr(const std::vector<double>& bounds) {
  return bounds.empty() ? RequestSecondsBounds() : bounds;
}

}  // namespace

GatewayMetrics::GatewayMetrics(Registry& to, const std::vector<double>& bounds)
    : registry(to),
      requests(to.AddCounter("portico_gateway_requests_total", "Requests to be proxied.")),
      retries(to.AddCounter("portico_gateway_retries_total", "Attempts after the first.")),
      hedges(to.AddCounter("portico_gateway_hedges_total",
                           "Requests that a second worker was asked for, the first being slow.")),
      streamed_bodies(to.AddCounter("portico_gateway_streamed_bodies_total",
                                    "Requests whose body was forwarded while it arrived.")),
      no_worker(to.AddCounter("portico_gateway_no_worker_total",
                              "Requests answered 503: no worker could take them.")),
      queue_full(to.AddCounter("portico_gateway_rejected_total",
                               "Requests answered 429: over the limit of concurrent requests.")),
      cut_streams(to.AddCounter("portico_gateway_cut_streams_total",
                                "Streams that were lost after they had begun.")),
      client_gone(to.AddCounter("portico_gateway_clients_gone_total",
                                "Clients that left before their answer was complete.")),
      health_changes(
          to.AddCounter("portico_gateway_health_changes_total", "Changes of a worker's health.")),
      kv_event_batches(to.AddCounter("portico_gateway_kv_event_batches_total",
                                     "Batches of events of workers' caches.")),
      kv_event_resets(to.AddCounter("portico_gateway_kv_event_resets_total",
                                    "Times that the state of a worker's cache was reset.")),
      kv_event_faults(
          to.AddCounter("portico_gateway_kv_event_faults_total",
                        "Messages of workers' caches over ZMQ that could not be read, and replays "
                        "that did not come.")),
      seconds(
          to.AddHistogram("portico_gateway_request_seconds", "Whole requests.", BoundsOr(bounds))),
      first_seconds(to.AddHistogram("portico_gateway_first_byte_seconds",
                                    "From a request to the first byte of a worker's answer.",
                                    BoundsOr(bounds))) {
  for (int digit = 1; digit <= kStatusClasses; ++digit) {
    ended_[static_cast<size_t>(digit) - 1] = &to.AddCounter(
        "portico_gateway_responses_total",
        "Requests that have ended, by the class of their status; 4xx has those whose "
        "client has left. Streams that were cut after their beginning are 2xx.",
        {{"class", std::to_string(digit) + "xx"}});
  }
  for (const AttemptFailure kind : kAttemptFailures) {
    failures_[static_cast<size_t>(kind)] =
        &to.AddCounter(kFailures, kFailuresHelp, {{"kind", std::string(AttemptFailureName(kind))}});
  }
}

}  // namespace portico::router
