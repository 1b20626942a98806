// What the gateway is told; defaults are those of the flags (docs/gateway.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "router/admission_queue.h"
#include "router/breaker.h"
#include "router/policy/policy_options.h"
#include "router/worker.h"

namespace portico::router {

struct RetryOptions {
  int max_attempts = 5;  // in all; 1: no retries
  Duration initial_backoff = std::chrono::milliseconds(50);
  Duration max_backoff = std::chrono::seconds(30);
  double multiplier = 1.5;
  double jitter = 0.2;  // share of the pause, 0..1
};

struct HealthOptions {
  bool enabled = true;
  int failure_threshold = 3;  // probes in a row
  int success_threshold = 1;
  Duration timeout = std::chrono::seconds(5);
  Duration interval = std::chrono::seconds(60);
  Duration down_interval = std::chrono::milliseconds(500);  // of workers that are not healthy
  std::string path = "/health";
  // A worker that holds requests and from which nothing has come for so long is stalled; one whose server
  // answers, but whose engine does not infer, after twice as long. Zero: never.
  Duration stall_timeout = std::chrono::seconds(10);
  // Whoever runs the gateway starts its workers with it: that one is not up yet is no cause for a warning.
  bool starts_workers = false;
};

// Which policy chooses among the workers of each role.
struct PolicyChoice {
  std::string regular = "round_robin";
  std::string prefill = {};  // empty: the one of regular workers
  std::string decode = {};
  PolicyOptions options = {};

  const std::string& of(Role role) const {
    const std::string& own = role == Role::kPrefill  ? prefill
                             : role == Role::kDecode ? decode
                                                     : regular;
    return own.empty() ? regular : own;
  }
  bool operator==(const PolicyChoice&) const = default;
};

struct GatewayOptions {
  PolicyChoice policy;
  std::map<std::string, std::string, std::less<>> aliases;  // of models (ModelAliases)
  // Requests that generate go to a prefill and a decode worker at once; there are no others.
  bool pairs = false;
  // Each data-parallel rank of a server is a worker.
  bool dp_aware = false;
  BreakerOptions breaker;
  RetryOptions retry;
  HealthOptions health;
  Duration load_interval =
      std::chrono::seconds(10);  // between questions for a worker's load; zero: none
  Duration request_timeout = std::chrono::seconds(1800);
  Duration connect_timeout = std::chrono::seconds(5);
  Duration pool_idle = std::chrono::seconds(3);
  bool upstream_http2 = false;  // HTTP workers speak HTTP/2
  KvAddress kv_events;          // of HTTP workers that name none; empty: what they say themselves
  AdmissionLimits admission;    // of the gateway
  // A longer body is passed on as it comes, if its worker takes bytes and nothing behind this much of it
  // is needed; zero: none.
  size_t buffered_body_bytes = 1 << 20;
  Duration queue_timeout = std::chrono::seconds(60);
  // An event stream that is silent for so long gets a comment; zero: never.
  Duration sse_keep_alive = std::chrono::seconds(15);
  int64_t worker_max_requests = 0;  // of each worker that names none; 0: no limit
  bool strict_models = false;       // a model that no worker names is refused
  bool show_workers = false;        // x-portico-worker in answers
  bool access_log = false;
  Duration hedge_after{};  // a slow request goes to a second worker; zero: never
  std::string api_key;     // sent to workers that have none of their own
  // Sent to no worker, though clients or operators show them.
  std::vector<std::string> kept_keys;
  std::vector<std::string> ca_files;  // of workers with TLS; none: the system's
  std::string client_certificate;
  std::string client_key;
  std::vector<double> duration_buckets;  // of histograms, seconds, rising; empty: the usual ones
  std::vector<std::string> request_id_headers = {"x-request-id", "x-correlation-id", "x-trace-id",
                                                 "request-id"};
};

}  // namespace portico::router
