#include "app/options/route_flag_hints.h"

#include <fmt/format.h>

#include <iterator>

#include "absl/strings/str_replace.h"

namespace portico {
namespace {

constexpr std::string_view kNoConversations = "the gateway keeps no conversations";
constexpr std::string_view kNoEpd = "workers that only encode (EPD) are not supported";
constexpr std::string_view kNoHooks = "there are no WASM modules and no storage hooks";
constexpr std::string_view kNoJwt = "there is no JWT; --control-plane-api-keys has roles";
constexpr std::string_view kNoMesh = "gateways share no state (no mesh)";
constexpr std::string_view kNoShedding =
    "there is no overload shedding; --worker-max-requests limits what a worker gets";
constexpr std::string_view kNoTenants = "there are no tenants";
constexpr std::string_view kNoTracing =
    "there is no OpenTelemetry export; workers get the traceparent of requests";
constexpr std::string_view kNoWarmUp = "there are no settings for the warm-up of workers";
constexpr std::string_view kFixedTime = "this time limit has no flag";
constexpr std::string_view kForwardedMedia = "media are forwarded to the workers as they come";
constexpr std::string_view kKeptWorkers =
    "workers that are down stay, and are probed until they answer";
constexpr std::string_view kNoIndexChoice = "its prefix indexes have no such choice";
constexpr std::string_view kNoRl =
    "there is no /v1/rl; controls of engines have their own routes, which go to all workers";
constexpr std::string_view kOneQueue =
    "--worker-max-requests, --queue-size and --queue-timeout-secs are for prefill workers, too";
constexpr std::string_view kPriorities =
    "the header x-smg-priority orders the queue, and its classes have no settings";
constexpr std::string_view kSticky = "--policy manual keeps a routing key on its worker";
constexpr std::string_view kTextCaches = "caches of tokenizers have no flags";
constexpr std::string_view kNoKvConnectors =
    "vLLM's connectors for prefill and decode workers are not supported";

constexpr RouteFlagHint kSglangRouter[] = {
    {.name = "tokenizer-cache-enable-l0", .note = kTextCaches},
    {.name = "tokenizer-cache-l0-max-entries", .note = kTextCaches},
    {.name = "tokenizer-cache-enable-l1", .note = kTextCaches},
    {.name = "tokenizer-cache-l1-max-memory", .note = kTextCaches},
    {.name = "mcp-config-path", .note = "there is no MCP"},
    {.name = "oracle-wallet-path", .note = kNoConversations},
    {.name = "oracle-tns-alias", .note = kNoConversations},
    {.name = "oracle-connect-descriptor", .note = kNoConversations},
    {.name = "oracle-username", .note = kNoConversations},
    {.name = "oracle-password", .note = kNoConversations},
    {.name = "oracle-pool-min", .note = kNoConversations},
    {.name = "oracle-pool-max", .note = kNoConversations},
    {.name = "oracle-pool-timeout-secs", .note = kNoConversations},
    {.name = "postgres-db-url", .note = kNoConversations},
    {.name = "postgres-pool-max", .note = kNoConversations},
    {.name = "redis-url", .note = kNoConversations},
    {.name = "redis-pool-max", .note = kNoConversations},
    {.name = "redis-retention-days", .note = kNoConversations},
    {.name = "enable-trace", .note = kNoTracing},
    {.name = "otlp-traces-endpoint", .note = kNoTracing},
    {.name = "jwt-issuer", .note = kNoJwt},
    {.name = "jwt-audience", .note = kNoJwt},
    {.name = "jwt-jwks-uri", .note = kNoJwt},
    {.name = "jwt-role-mapping", .note = kNoJwt},
};

constexpr RouteFlagHint kSmg[] = {
    // By another name.
    {.name = "cache-match-threshold", .flag = "cache-threshold"},
    {.name = "spill-abs-threshold", .flag = "balance-abs-threshold"},
    {.name = "spill-rel-threshold", .flag = "balance-rel-threshold"},
    {.name = "sticky-key-idle-secs", .flag = "max-idle-secs"},
    {.name = "max-buffered-request-bytes", .flag = "max-buffered-body-bytes"},
    {.name = "model-alias", .flag = "aliases"},
    {.name = "worker-stall-secs", .flag = "worker-stall-timeout-secs"},
    {.name = "worker-wedge-secs", .flag = "worker-stall-timeout-secs"},
    // Not here, or without a flag.
    {.name = "balance-token-usage-threshold",
     .note = "cost and least_load count how full the workers' KV caches are"},
    {.name = "block-size", .note = "the workers' events tell the size of their blocks"},
    {.name = "cache-boundaries", .note = kNoIndexChoice},
    {.name = "cache-index", .note = kNoIndexChoice},
    {.name = "cache-ttl-secs", .note = kNoIndexChoice},
    {.name = "disable-tokenizer-autoload",
     .note = "tokenizers are loaded only for workers that take tokens"},
    {.name = "disable-worker-overload-protection", .note = kNoShedding},
    {.name = "discovery-provider",
     .note = "--service-discovery and --discovery-file select the provider"},
    {.name = "dp-minimum-tokens-scheduler",
     .note = "with --dp-aware the policy chooses among ranks"},
    {.name = "enable-mesh", .note = kNoMesh},
    {.name = "enable-rl", .note = kNoRl},
    {.name = "enable-wasm", .note = kNoHooks},
    {.name = "encode", .note = kNoEpd},
    {.name = "encode-policy", .note = kNoEpd},
    {.name = "encode-selector", .note = kNoEpd},
    {.name = "epd-disaggregation", .note = kNoEpd},
    {.name = "header-read-timeout-secs", .note = kFixedTime},
    {.name = "health-check-port",
     .note = "the port of --prometheus-port has /health and /readiness, too"},
    {.name = "history-memory-", .note = kNoConversations},
    {.name = "idle-connection-timeout-secs", .note = kFixedTime},
    {.name = "jemalloc-prof-dir", .note = "docs/profiling.md describes the gateway's profiler"},
    {.name = "job-queue-", .note = "workers are added at once, without a queue of jobs"},
    {.name = "kv-connector-annotation", .note = kNoKvConnectors},
    {.name = "kv-engine-id-annotation", .note = kNoKvConnectors},
    {.name = "kv-index", .note = kNoIndexChoice},
    {.name = "log-json", .note = "the log is text"},
    {.name = "log-mm-timing", .note = kForwardedMedia},
    {.name = "max-background-responses", .note = kNoConversations},
    {.name = "mesh-", .note = kNoMesh},
    {.name = "mm-", .note = kForwardedMedia},
    {.name = "model-id-from", .note = "workers tell the names of their models"},
    {.name = "multimodal-", .note = kForwardedMedia},
    {.name = "no-remove-unhealthy-workers", .note = kKeptWorkers},
    {.name = "no-worker-auto-recovery", .note = kKeptWorkers},
    {.name = "oracle-external-auth", .note = kNoConversations},
    {.name = "overlap-decay", .note = kNoIndexChoice},
    {.name = "overload-token-usage-threshold", .note = kNoShedding},
    {.name = "parser", .note = "--tool-call-parser and --reasoning-parser name the formats"},
    {.name = "pd-admission-wait-secs", .note = kOneQueue},
    {.name = "postgres-op-timeout-secs", .note = kNoConversations},
    {.name = "prefill-max-inflight-requests-per-worker", .note = kOneQueue},
    {.name = "prefill-queue-", .note = kOneQueue},
    {.name = "priority-scheduler-", .note = kPriorities},
    {.name = "rdma-", .note = kForwardedMedia},
    {.name = "redis-op-timeout-secs", .note = kNoConversations},
    {.name = "remove-unhealthy-workers", .note = kKeptWorkers},
    {.name = "rl-", .note = kNoRl},
    {.name = "router-selector", .note = kNoMesh},
    {.name = "routing-key-", .note = kSticky},
    {.name = "schema-config", .note = kNoConversations},
    {.name = "selection-", .note = kNoIndexChoice},
    {.name = "sticky-sessions", .note = kSticky},
    {.name = "storage-context-headers", .note = kNoHooks},
    {.name = "storage-hook-wasm-path", .note = kNoHooks},
    {.name = "stream-body-stall-timeout-secs", .note = kFixedTime},
    {.name = "tenant-", .note = kNoTenants},
    {.name = "tokenizer-cache-l0-max-memory", .note = kTextCaches},
    {.name = "trust-tenant-header", .note = kNoTenants},
    {.name = "worker-auto-recovery", .note = kKeptWorkers},
    {.name = "worker-overload-", .note = kNoShedding},
    {.name = "worker-stale-secs",
     .note = "workers are asked for their load (--load-monitor-interval)"},
    {.name = "worker-startup-delay", .note = "workers are probed from the start on"},
    {.name = "worker-warmup-", .note = kNoWarmUp},
    {.name = "zmq-engine-count", .note = "workers over ZMQ (ipc://) are not supported"},
};

}  // namespace

std::span<const RouteFlagHint> SglangRouterFlagHints() { return kSglangRouter; }

std::span<const RouteFlagHint> SmgFlagHints() { return kSmg; }

const RouteFlagHint* FindSmgFlagHint(std::string_view name) {
  if (name.empty()) return nullptr;
  const RouteFlagHint* begins = nullptr;
  for (const RouteFlagHint& hint : kSmg) {
    const bool family = hint.name.ends_with('-');
    if (hint.name == name || (family && name.starts_with(hint.name))) return &hint;
    if (begins == nullptr && hint.name.starts_with(name)) begins = &hint;
  }
  return begins;
}

std::string NoSuchRouteFlag(std::string_view name, const RouteFlagHint& hint,
                            std::string_view prefix) {
  const std::string mark = fmt::format("--{}", prefix);
  std::string said = fmt::format("unknown flag {}{}", mark, name);
  if (!hint.flag.empty()) return fmt::format("{}; here it is {}{}", said, mark, hint.flag);
  return fmt::format("{}: {}", said, absl::StrReplaceAll(std::string(hint.note), {{"--", mark}}));
}

}  // namespace portico
