// What the options of `portico route` make: what the gateway is told. Its workers: route_options_workers.cc.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "app/options/route_options.h"
#include "app/options/route_options_models.h"
#include "app/options/route_options_table.h"
#include "router/policy/make_policy.h"

namespace portico {
namespace {

Status BadOption(std::string message) {
  return Error(StatusCode::kInvalidArgument, std::move(message));
}

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// "a=b,c=d" of the words of a selector.
StatusOr<std::string> SelectorOf(std::string_view flag, const std::vector<std::string>& words) {
  std::string selector;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || word.find(',') != std::string::npos) {
      return BadOption(fmt::format("{}: `{}` is not KEY=VALUE", flag, word));
    }
    selector += (selector.empty() ? "" : ",") + word;
  }
  return selector;
}

Status SetDiscovery(const RouteOptions& options, GatewayServiceOptions* service) {
  router::DiscoveryOptions discovery;
  const auto select = [&](std::string_view flag, const std::vector<std::string>& words,
                          router::Role role, bool needed) -> Status {
    if (words.empty() && !needed) return OkStatus();
    if (!options.service_discovery)
      return BadOption(fmt::format("{} needs --service-discovery", flag));
    if (words.empty()) return BadOption(fmt::format("--service-discovery needs {}", flag));
    PORTICO_ASSIGN_OR_RETURN(std::string selector, SelectorOf(flag, words));
    discovery.selected.push_back({role, std::move(selector)});
    return OkStatus();
  };
  const bool on = options.service_discovery;
  const bool pairs = options.pd_disaggregation;
  if (pairs && !options.selector.empty()) {
    return BadOption(
        "--selector: --pd-disaggregation takes --prefill-selector and --decode-selector");
  }
  PORTICO_RETURN_IF_ERROR(
      select("--selector", options.selector, router::Role::kRegular, on && !pairs));
  PORTICO_RETURN_IF_ERROR(
      select("--prefill-selector", options.prefill_selector, router::Role::kPrefill, on && pairs));
  PORTICO_RETURN_IF_ERROR(
      select("--decode-selector", options.decode_selector, router::Role::kDecode, on && pairs));
  if (!on) return OkStatus();
  if (!options.discovery_file.empty()) {
    return BadOption("--discovery-file and --service-discovery exclude each other");
  }
  PORTICO_ASSIGN_OR_RETURN(discovery.cluster, router::InCluster());
  discovery.space = options.service_discovery_namespace;
  discovery.port = static_cast<int>(options.service_discovery_port);
  service->discovery = std::move(discovery);
  return OkStatus();
}

Status SetAliases(const std::vector<std::string>& words, router::ModelAliases* aliases) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
      return BadOption(fmt::format("--aliases: `{}` is not ALIAS=MODEL", word));
    }
    const std::string alias = word.substr(0, equals);
    if (!aliases->emplace(alias, word.substr(equals + 1)).second) {
      return BadOption(fmt::format("--aliases: `{}` is named twice", alias));
    }
  }
  for (const auto& [alias, model] : *aliases) {
    if (aliases->contains(model)) {
      return BadOption(
          fmt::format("--aliases: `{}` stands for `{}`, which is an alias", alias, model));
    }
  }
  return OkStatus();
}

Status CheckPairs(const RouteOptions& options) {
  const std::pair<std::string_view, bool> given[] = {
      {"--mini-lb", options.mini_lb},
      {"--prefill-policy", !options.prefill_policy.empty()},
      {"--decode-policy", !options.decode_policy.empty()},
      {"--prefill-selector", !options.prefill_selector.empty()},
      {"--decode-selector", !options.decode_selector.empty()}};
  for (const auto& [flag, is] : given) {
    if (is && !options.pd_disaggregation)
      return BadOption(fmt::format("{} needs --pd-disaggregation", flag));
  }
  for (const auto& [flag, name] : {std::pair{"--prefill-policy", options.prefill_policy},
                                   std::pair{"--decode-policy", options.decode_policy}}) {
    if (name.empty()) continue;
    const auto policy = router::MakePolicy(name, {});
    if (!policy.ok()) return BadOption(fmt::format("{}: {}", flag, MessageOf(policy.status())));
  }
  return OkStatus();
}

Status CheckTlsFiles(const RouteOptions& options) {
  if (options.tls_cert_path.empty() != options.tls_key_path.empty()) {
    return BadOption("--tls-cert-path and --tls-key-path need each other");
  }
  if (options.client_cert_path.empty() != options.client_key_path.empty()) {
    return BadOption("--client-cert-path and --client-key-path need each other");
  }
  return OkStatus();
}

// What the gateway's own listeners and routes are told.
void SetServer(const RouteOptions& options, GatewayServiceOptions* service) {
  service->shards = static_cast<int>(options.shards);
  service->api_key = options.api_key;
  service->allowed_host = options.allowed_host;
  service->server_note = options.server_note;
  service->cors_origins = options.cors_allowed_origins;
  service->prometheus_host = options.prometheus_host;
  if (options.prometheus_port >= 0) {
    service->prometheus_port = static_cast<int>(options.prometheus_port);
  }
  service->prometheus_required = options.prometheus_port_given;
  service->profile.directory = options.profile_dir;
  service->profile.max_bytes = options.profile_max_bytes;
  net::ServerOptions& listener = service->listener;
  listener.host = options.host;
  listener.port = static_cast<int>(options.port);
  listener.max_connections = static_cast<int>(options.max_connections);
  listener.max_body_bytes = static_cast<size_t>(options.max_payload_size);
  listener.max_inflight_body_bytes =
      std::max(listener.max_inflight_body_bytes, 2 * listener.max_body_bytes);
  listener.max_unsent_bytes = static_cast<size_t>(options.max_unsent_bytes);
  listener.tls.certificate = options.tls_cert_path;
  listener.tls.key = options.tls_key_path;
}

// How workers are chosen.
void SetPolicies(const RouteOptions& options, router::GatewayOptions* gateway) {
  gateway->pairs = options.pd_disaggregation;
  gateway->dp_aware = options.dp_aware;
  gateway->strict_models = options.enable_igw;
  gateway->policy.regular = options.mini_lb && !options.policy_given ? "random" : options.policy;
  gateway->policy.prefill = options.prefill_policy;
  gateway->policy.decode = options.decode_policy;
  gateway->policy.options = {
      .cache_threshold = options.cache_threshold,
      .balance_abs_threshold = options.balance_abs_threshold,
      .balance_rel_threshold = options.balance_rel_threshold,
      .eviction_interval = FromSeconds(options.eviction_interval_secs),
      .max_tree_size = options.max_tree_size,
      .cache_aware_miss = options.cache_aware_miss,
      .index_bytes = options.index_bytes,
      .max_idle = FromSeconds(options.max_idle_secs),
      .assignment_mode = options.assignment_mode,
      .bucket_adjust_interval = FromSeconds(options.bucket_adjust_interval_secs),
      .prefix_token_count = options.prefix_token_count,
      .prefix_hash_load_factor = options.prefix_hash_load_factor,
      .prefix_hash_balance_abs_threshold = options.prefix_hash_balance_abs_threshold,
      .least_load_kv_pressure_weight = options.least_load_kv_pressure_weight,
      .least_load_default_throughput = options.least_load_default_throughput,
      .least_load_mean_prefill_tokens = options.least_load_mean_prefill_tokens,
      .least_load_max_waiting_requests = options.least_load_max_waiting_requests,
      .power_of_two_load_metric = options.power_of_two_load_metric};
}

// When a worker counts as failed, and what becomes of its requests.
void SetFailureRules(const RouteOptions& options, router::GatewayOptions* gateway) {
  gateway->breaker = {.enabled = !options.disable_circuit_breaker,
                      .failure_threshold = static_cast<int>(options.cb_failure_threshold),
                      .success_threshold = static_cast<int>(options.cb_success_threshold),
                      .window = FromSeconds(options.cb_window_duration_secs),
                      .open_time = FromSeconds(options.cb_timeout_duration_secs)};
  gateway->retry = {
      .max_attempts = options.disable_retries ? 1 : static_cast<int>(options.retry_max_retries),
      .initial_backoff = std::chrono::milliseconds(options.retry_initial_backoff_ms),
      .max_backoff = std::chrono::milliseconds(options.retry_max_backoff_ms),
      .multiplier = options.retry_backoff_multiplier,
      .jitter = options.retry_jitter_factor};
  gateway->health = {
      .enabled = !options.disable_health_check,
      .failure_threshold = static_cast<int>(options.health_failure_threshold),
      .success_threshold = static_cast<int>(options.health_success_threshold),
      .timeout = FromSeconds(options.health_check_timeout_secs),
      .interval = FromSeconds(options.health_check_interval_secs),
      .down_interval = std::chrono::milliseconds(options.worker_down_check_interval_ms),
      .path = options.health_check_endpoint,
      .stall_timeout = FromSeconds(options.worker_stall_timeout_secs)};
  gateway->load_interval = options.disable_load_monitoring
                               ? Duration::zero()
                               : FromSeconds(options.load_monitor_interval);
  gateway->hedge_after = std::chrono::milliseconds(options.hedge_after_ms);
}

// How workers are called.
void SetUpstream(const RouteOptions& options, router::GatewayOptions* gateway) {
  gateway->request_timeout = FromSeconds(options.request_timeout_secs);
  gateway->connect_timeout = FromSeconds(options.worker_connect_timeout_secs);
  gateway->upstream_http2 = options.upstream_http2;
  gateway->pool_idle = FromSeconds(options.upstream_pool_idle_timeout_secs);
  gateway->worker_max_requests = options.worker_max_requests;
  if (!options.keeps_key) {
    gateway->api_key = options.api_key;
  } else if (!options.api_key.empty()) {
    gateway->kept_keys.push_back(options.api_key);
  }
  gateway->ca_files = options.ca_cert_paths;
  gateway->client_certificate = options.client_cert_path;
  gateway->client_key = options.client_key_path;
}

Status SetGatewayKvEvents(const std::string& text, router::GatewayOptions* gateway) {
  if (text.empty()) return OkStatus();
  auto address = router::ParseKvAddress(text);
  if (!address.ok()) {
    return BadOption(fmt::format("--kv-events-config: {}", MessageOf(address.status())));
  }
  gateway->kv_events = *std::move(address);
  return OkStatus();
}

Status SetDurationBuckets(const std::vector<std::string>& words, std::vector<double>* bounds) {
  for (const std::string& text : words) {
    double bound = 0;
    if (!absl::SimpleAtod(text, &bound) || !(bound > 0) || !std::isfinite(bound) ||
        (!bounds->empty() && bound <= bounds->back())) {
      return BadOption(fmt::format(
          "--prometheus-duration-buckets: `{}` is not a number above the previous one", text));
    }
    bounds->push_back(bound);
  }
  return OkStatus();
}

Status SetControlPlane(const RouteOptions& options, GatewayServiceOptions* service) {
  for (const std::string& text : options.control_plane_api_keys) {
    auto key = api::ParseControlKey(text);
    if (!key.ok())
      return BadOption(fmt::format("--control-plane-api-keys: {}", MessageOf(key.status())));
    service->gateway.kept_keys.push_back(key->key);
    service->control_keys.push_back(*std::move(key));
  }
  service->audit = options.control_plane_audit_enabled;
  return OkStatus();
}

// What becomes of a request from its arrival to its answer, whichever worker it goes to.
Status SetRequestRules(const RouteOptions& options, router::GatewayOptions* gateway) {
  gateway->admission = {.requests = options.max_concurrent_requests,
                        .queue = options.queue_size,
                        .per_second = options.rate_limit_tokens_per_second};
  gateway->queue_timeout = FromSeconds(options.queue_timeout_secs);
  // Smaller bodies are not counted in what bodies may take together (net::BodyBudget).
  if (options.max_buffered_body_bytes != 0 &&
      options.max_buffered_body_bytes < static_cast<int64_t>(net::BodyBudget::kSmallBody)) {
    return BadOption("--max-buffered-body-bytes is 0 or at least 65536");
  }
  gateway->buffered_body_bytes = static_cast<size_t>(options.max_buffered_body_bytes);
  gateway->sse_keep_alive = FromSeconds(options.sse_keepalive_secs);
  gateway->show_workers = options.show_workers;
  gateway->access_log = options.access_log;
  if (!options.request_id_headers.empty()) {
    gateway->request_id_headers = options.request_id_headers;
    for (std::string& name : gateway->request_id_headers) {
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
        return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
      });
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<GatewayServiceOptions> ServiceOptionsOf(const RouteOptions& options) {
  PORTICO_RETURN_IF_ERROR(CheckTlsFiles(options));
  if (!options.health_check_endpoint.starts_with('/')) {
    return BadOption("--health-check-endpoint must begin with /");
  }
  GatewayServiceOptions service;
  router::GatewayOptions& gateway = service.gateway;
  SetServer(options, &service);
  PORTICO_RETURN_IF_ERROR(SetModels(options, &service));
  PORTICO_RETURN_IF_ERROR(CheckPairs(options));
  PORTICO_RETURN_IF_ERROR(SetDiscovery(options, &service));
  PORTICO_RETURN_IF_ERROR(SetAliases(options.model_aliases, &gateway.aliases));
  SetPolicies(options, &gateway);
  SetFailureRules(options, &gateway);
  SetUpstream(options, &gateway);
  PORTICO_RETURN_IF_ERROR(SetGatewayKvEvents(options.kv_events_config, &gateway));
  PORTICO_RETURN_IF_ERROR(
      SetDurationBuckets(options.prometheus_duration_buckets, &gateway.duration_buckets));
  PORTICO_RETURN_IF_ERROR(SetControlPlane(options, &service));
  PORTICO_RETURN_IF_ERROR(SetRequestRules(options, &gateway));
  return service;
}

}  // namespace portico
