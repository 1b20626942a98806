// What `portico route` can be told. route_options_table.cc is the one table behind its command
// line, its YAML file, --help and docs/gateway.md. Names and defaults are sglang-router's where it
// has the flag; docs/gateway.md lists the exceptions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/gateway/gateway_service.h"
#include "base/status.h"
#include "router/worker.h"

namespace portico {

// Of one model whose workers take tokens; empty: as the flags say.
struct ModelTexts {
  std::string model_path;
  std::string tokenizer_path;
  std::string chat_template;
  std::string tool_call_parser;
  std::string reasoning_parser;
  std::string place;  // "FILE:LINE: ", where it is named
};

struct RouteOptions {
  std::string config;

  // Listening
  std::string host = "0.0.0.0";
  int64_t port = 30000;
  int64_t shards = 0;
  int64_t max_connections = 65536;
  int64_t max_payload_size = 536870912;
  int64_t max_buffered_body_bytes = 1048576;
  int64_t max_unsent_bytes = int64_t{4} << 20;
  std::string tls_cert_path;
  std::string tls_key_path;
  std::string api_key;
  std::vector<std::string> control_plane_api_keys;
  bool control_plane_audit_enabled = false;
  std::string allowed_host;

  // Workers
  std::vector<std::string> worker_urls;
  std::vector<router::WorkerSpec> workers;  // of the file's `workers`
  bool enable_igw = false;
  std::vector<std::string> model_aliases;
  double worker_startup_timeout_secs = 1800;
  double worker_startup_check_interval = 30;
  std::string client_cert_path;
  std::string client_key_path;
  std::vector<std::string> ca_cert_paths;
  double upstream_pool_idle_timeout_secs = 3;
  double worker_connect_timeout_secs = 5;
  bool upstream_http2 = false;
  int64_t worker_max_requests = 0;
  std::string kv_events_config;
  std::string model_path;
  std::string tokenizer_path;
  std::string chat_template;
  std::string backend = "sglang";          // without effect
  std::string history_backend = "memory";  // likewise
  std::string tool_call_parser = "auto";
  std::string reasoning_parser = "auto";
  std::map<std::string, ModelTexts> model_texts;  // of the file's `models`, by name

  // Prefill and decode, data-parallel ranks
  bool pd_disaggregation = false;
  std::vector<std::string> prefill;  // URLs, each with the port of its bootstrap server or "none"
  std::vector<std::string> decode;
  std::string prefill_policy;
  std::string decode_policy;
  bool mini_lb = false;
  bool dp_aware = false;

  // Discovery
  bool service_discovery = false;
  std::vector<std::string> selector;
  int64_t service_discovery_port = 80;
  std::string service_discovery_namespace;
  std::vector<std::string> prefill_selector;
  std::vector<std::string> decode_selector;
  std::string discovery_file;
  double discovery_check_interval_secs = 30;

  // Policy
  std::string policy = "cost";
  bool policy_given = false;
  double cache_threshold = 0.3;
  int64_t balance_abs_threshold = 64;
  double balance_rel_threshold = 1.5;
  double bucket_adjust_interval_secs = 5;
  double eviction_interval_secs = 60;
  int64_t max_tree_size = 67108864;
  std::string cache_aware_miss = "least-load";
  double max_idle_secs = 14400;
  std::string assignment_mode = "random";
  int64_t index_bytes = int64_t{256} << 20;
  int64_t prefix_token_count = 256;
  double prefix_hash_load_factor = 1.25;
  int64_t prefix_hash_balance_abs_threshold = 10;
  double least_load_kv_pressure_weight = 0.15;
  double least_load_default_throughput = 2000;
  int64_t least_load_mean_prefill_tokens = 1024;
  int64_t least_load_max_waiting_requests = 0;
  std::string power_of_two_load_metric = "requests";

  // Requests
  std::vector<std::string> request_id_headers;
  double request_timeout_secs = 1800;
  double shutdown_grace_period_secs = 180;
  int64_t max_concurrent_requests = -1;
  int64_t queue_size = 100;
  double queue_timeout_secs = 60;
  int64_t rate_limit_tokens_per_second = 0;
  int64_t hedge_after_ms = 0;
  double sse_keepalive_secs = 15;
  std::vector<std::string> cors_allowed_origins;

  // Retries
  int64_t retry_max_retries = 5;
  int64_t retry_initial_backoff_ms = 50;
  int64_t retry_max_backoff_ms = 30000;
  double retry_backoff_multiplier = 1.5;
  double retry_jitter_factor = 0.2;
  bool disable_retries = false;

  // Circuit breaker
  int64_t cb_failure_threshold = 10;
  int64_t cb_success_threshold = 1;
  double cb_timeout_duration_secs = 60;
  double cb_window_duration_secs = 120;
  bool disable_circuit_breaker = false;

  // Health
  int64_t health_failure_threshold = 3;
  int64_t health_success_threshold = 1;
  double health_check_timeout_secs = 5;
  double health_check_interval_secs = 60;
  double load_monitor_interval = 10;
  bool disable_load_monitoring = false;
  int64_t worker_down_check_interval_ms = 500;
  double worker_stall_timeout_secs = 10;
  std::string health_check_endpoint = "/health";
  bool disable_health_check = false;

  // Logging and metrics
  std::string profile_dir;  // empty: the environment's, or the cache folder's
  int64_t profile_max_bytes = int64_t{256} << 20;
  std::string log_level = "info";
  bool access_log = false;
  bool show_workers = false;
  std::string prometheus_host = "0.0.0.0";
  int64_t prometheus_port = 29000;  // negative: no listener of its own
  bool prometheus_port_given = false;
  std::vector<std::string> prometheus_duration_buckets;
  std::string log_dir;

  // Not of the table:
  std::string server_note;  // GatewayServiceOptions
  bool key_given = false;   // api_key, by a flag or the file and not by the environment alone
  std::string worker_key;   // of the workers that launch starts; empty: the gateway's
  std::vector<std::string> started_workers;  // their URLs, among worker_urls
  bool keeps_key = false;  // api_key is that of the started workers, and sent to no other
};

struct ParsedRouteOptions {
  RouteOptions options;
  // Set when help was asked for: print it on standard output and exit with status 0.
  std::optional<std::string> print_and_exit;
};

// Reads the words of a command line, without the program's and the command's name, and the file
// that --config names; the command line wins. As argparse does: `--name=value`, unambiguous
// prefixes of names, lists of several words; a repeated list grows. Every error is
// INVALID_ARGUMENT (NOT_FOUND for the file), one line that names the flag, or the file and key.
// `prefix` is in front of every name ("router-" for `portico launch`); words without it are left
// for *others if that is not null.
StatusOr<ParsedRouteOptions> ParseRouteOptions(const std::vector<std::string>& words,
                                               std::string_view prefix = "",
                                               std::vector<std::string>* others = nullptr);

// Whether the word of a command line is a flag of `portico route`, or begins as one or several.
bool IsRouteFlag(std::string_view word);

// Lines of a file, from 1, by the names of the options that its keys set.
using RouteKeyLines = std::map<std::string, int, std::less<>>;

// Adds what a YAML file says; *lines gets where. INVALID_ARGUMENT names file, line and key.
Status ApplyRouteYaml(const std::string& text, const std::string& file, RouteOptions* options,
                      RouteKeyLines* lines);

// A list of workers as in the file's `workers`, in YAML or JSON.
StatusOr<std::vector<router::WorkerSpec>> ReadWorkerList(const std::string& text,
                                                         const std::string& file);

std::string RouteOptionsHelp();

// A worker's role by its name, and the port of its bootstrap server: a number or "none".
Status SetRole(const std::string& name, router::WorkerSpec* spec);
Status SetBootstrapPort(const std::string& text, router::WorkerSpec* spec);

// What launch adds to what flags and file say: the URLs of the workers that it starts, and their key, which may be empty. Where
// neither flags nor file name a key of the clients, theirs is that one too, or the environment's, and then no other worker gets it.
void AddStarted(std::string worker_key, std::vector<std::string> urls, RouteOptions* options);

// All workers that are named, each once.
StatusOr<std::vector<router::WorkerSpec>> WorkersOf(const RouteOptions& options);
StatusOr<GatewayServiceOptions> ServiceOptionsOf(const RouteOptions& options);

}  // namespace portico
