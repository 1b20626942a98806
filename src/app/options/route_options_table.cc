#include "app/options/route_options_table.h"

#include <iterator>
#include <vector>

namespace portico {
namespace {

constexpr RouteOption kDoors[] = {
    {.group = "Listening",
     .name = "config",
     .member = &RouteOptions::config,
     .metavar = "FILE",
     .help = "YAML file whose keys are the names of the flags, plus `workers`: a list of `url`, "
             "`api-key`, `models` and `labels`, and `models`: tokenizers, templates and parsers of "
             "single models. Reread on SIGHUP."},
    {.group = "Listening",
     .name = "host",
     .member = &RouteOptions::host,
     .metavar = "HOST",
     .help = "The address to listen on."},
    {.group = "Listening",
     .name = "port",
     .member = &RouteOptions::port,
     .metavar = "PORT",
     .help = "The port to listen on; 0 picks a free one.",
     .max = 65535},
    {.group = "Listening",
     .name = "shards",
     .member = &RouteOptions::shards,
     .metavar = "N",
     .help = "I/O threads; 0 uses a quarter of the cores, at least 1.",
     .max = 1024},
    {.group = "Listening",
     .name = "max-connections",
     .member = &RouteOptions::max_connections,
     .metavar = "N",
     .help = "Open client connections; further ones get 503.",
     .min = 1},
    {.group = "Listening",
     .name = "max-payload-size",
     .member = &RouteOptions::max_payload_size,
     .metavar = "BYTES",
     .help = "Maximum size of a request body; larger ones return 413.",
     .min = 1},
    {.group = "Listening",
     .name = "max-buffered-body-bytes",
     .member = &RouteOptions::max_buffered_body_bytes,
     .metavar = "BYTES",
     .help =
         "A larger request body is forwarded to an HTTP worker while it arrives, at least 65536; "
         "such a request is not retried once its rest flows. 0 buffers every body."},
    {.group = "Listening",
     .name = "max-unsent-bytes",
     .member = &RouteOptions::max_unsent_bytes,
     .metavar = "BYTES",
     .help = "A stream whose client falls this far behind is closed.",
     .min = 65536},
    {.group = "Listening",
     .name = "tls-cert-path",
     .member = &RouteOptions::tls_cert_path,
     .metavar = "FILE",
     .help = "The gateway's certificate (PEM)."},
    {.group = "Listening",
     .name = "tls-key-path",
     .member = &RouteOptions::tls_key_path,
     .metavar = "FILE",
     .help = "Private key of that certificate."},
    {.group = "Listening",
     .name = "api-key",
     .member = &RouteOptions::api_key,
     .metavar = "KEY",
     .help = "Bearer token that clients must send; by default the environment variable "
             "PORTICO_API_KEY. Workers without a key "
             "of their own are sent it too.",
     .secret = true},
    {.group = "Listening",
     .name = "control-plane-api-keys",
     .member = &RouteOptions::control_plane_api_keys,
     .metavar = "ID:NAME:ROLE:KEY",
     .help = "Keys for the routes of workers and controls, in place of --api-key; several may be "
             "given. The role admin may do everything, user may read.",
     .secret = true},
    {.group = "Listening",
     .name = "control-plane-audit-enabled",
     .member = &RouteOptions::control_plane_audit_enabled,
     .help = "Logs a line for each control request: who, what, from where."},
    {.group = "Listening",
     .name = "allowed-host",
     .member = &RouteOptions::allowed_host,
     .metavar = "NAMES",
     .help =
         "Host names, separated by commas, that requests may address if --host is localhost or a "
         "loopback address, in addition to those; * for all."},
    {.group = "Workers",
     .name = "worker-urls",
     .member = &RouteOptions::worker_urls,
     .metavar = "URL",
     .help = "URLs of workers: http://host:port or https://host:port; grpc://host:port or "
             "grpcs://host:port for workers that take token ids. A bare host:port is probed to "
             "find its protocol."},
    {.group = "Workers",
     .name = "enable-igw",
     .member = &RouteOptions::enable_igw,
     .help = "Serves many models behind one port: a request for a model that no worker serves is "
             "rejected."},
    {.group = "Workers",
     .name = "aliases",
     .member = &RouteOptions::model_aliases,
     .metavar = "ALIAS=MODEL",
     .help = "Alternative model names: a request for an alias goes to the workers that serve the "
             "model, which receive the model's own name."},
    {.group = "Workers",
     .name = "worker-startup-timeout-secs",
     .member = &RouteOptions::worker_startup_timeout_secs,
     .metavar = "SECONDS",
     .help = "The gateway exits if no worker is healthy after this time; 0 waits forever."},
    {.group = "Workers",
     .name = "worker-startup-check-interval",
     .member = &RouteOptions::worker_startup_check_interval,
     .metavar = "SECONDS",
     .help = "Accepted and ignored: unhealthy workers are probed every "
             "--worker-down-check-interval-ms."},
    {.group = "Workers",
     .name = "client-cert-path",
     .member = &RouteOptions::client_cert_path,
     .metavar = "FILE",
     .help = "Client certificate presented to workers over TLS."},
    {.group = "Workers",
     .name = "client-key-path",
     .member = &RouteOptions::client_key_path,
     .metavar = "FILE",
     .help = "Private key of that certificate."},
    {.group = "Workers",
     .name = "ca-cert-paths",
     .member = &RouteOptions::ca_cert_paths,
     .metavar = "FILE",
     .help = "Files with CA certificates that sign the workers' certificates; by default the "
             "system's."},
    {.group = "Workers",
     .name = "upstream-pool-idle-timeout-secs",
     .member = &RouteOptions::upstream_pool_idle_timeout_secs,
     .metavar = "SECONDS",
     .help = "A connection to a worker is not reused after being idle for this time.",
     .min = 0.1},
    {.group = "Workers",
     .name = "upstream-http2",
     .member = &RouteOptions::upstream_http2,
     .help = "Uses HTTP/2 for http and https workers: with prior knowledge, or with ALPN over TLS. "
             "Requests share connections."},
    {.group = "Workers",
     .name = "worker-connect-timeout-secs",
     .member = &RouteOptions::worker_connect_timeout_secs,
     .metavar = "SECONDS",
     .help = "Time limit for connecting to a worker.",
     .min = 0.01},
    {.group = "Workers",
     .name = "worker-max-requests",
     .member = &RouteOptions::worker_max_requests,
     .metavar = "N",
     .help = "Maximum concurrent requests per worker; 0 sets no limit."},
    {.group = "Workers",
     .name = "kv-events-config",
     .member = &RouteOptions::kv_events_config,
     .metavar = "JSON",
     .help = "Where http and https workers publish their KV cache events over ZMQ: the value of "
             "the workers' flag of the same name, with `dp_size`. The host is each worker's own."},
    {.group = "Workers",
     .name = "model-path",
     .member = &RouteOptions::model_path,
     .metavar = "PATH",
     .help = "For workers that take token ids: the model's folder, for its tokenizer and chat "
             "template. Without it and --tokenizer-path, the path that the worker reports, or the "
             "files that it sends."},
    {.group = "Workers",
     .name = "tokenizer-path",
     .member = &RouteOptions::tokenizer_path,
     .metavar = "PATH",
     .help = "The same, for the tokenizer only."},
    {.group = "Workers",
     .name = "chat-template",
     .member = &RouteOptions::chat_template,
     .metavar = "FILE",
     .help = "Chat template for requests to these workers, in place of the tokenizer's own."},
    {.group = "Workers",
     .name = "tool-call-parser",
     .member = &RouteOptions::tool_call_parser,
     .metavar = "NAME",
     .help = "Format of their models' tool calls, by its name in SGLang, vLLM or smg; auto detects "
             "it from the chat template and the vocabulary, none leaves calls in the text."},
    {.group = "Workers",
     .name = "reasoning-parser",
     .member = &RouteOptions::reasoning_parser,
     .metavar = "NAME",
     .help = "Format of their models' reasoning; auto and none as above."},
    // sglang-router's, so that its command lines with the default are taken.
    {.group = "Workers",
     .name = "backend",
     .member = &RouteOptions::backend,
     .metavar = "NAME",
     .help = "Accepted and ignored: workers of all engines are recognized.",
     .choices = "sglang",
     .choices_note = "workers of all engines are recognized"},
    {.group = "Workers",
     .name = "history-backend",
     .member = &RouteOptions::history_backend,
     .metavar = "NAME",
     .help = "Accepted and ignored: the gateway keeps no conversations.",
     .choices = "memory|none",
     .choices_note = "the gateway keeps no conversations"},
};

}  // namespace

std::span<const RouteOption> RouteOptionTable() {
  static const std::vector<RouteOption> table = [] {
    std::vector<RouteOption> all(std::begin(kDoors), std::end(kDoors));
    const auto fleet = FleetOptionTable();
    all.insert(all.end(), fleet.begin(), fleet.end());
    const auto requests = RequestOptionTable();
    all.insert(all.end(), requests.begin(), requests.end());
    return all;
  }();
  return table;
}

}  // namespace portico
