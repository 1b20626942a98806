#include "app/options/route_flag_hints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "app/options/route_options_table.h"

namespace portico {
namespace {

bool IsRouteOptionName(std::string_view name) {
  const auto table = RouteOptionTable();
  return std::any_of(table.begin(), table.end(),
                     [name](const RouteOption& option) { return option.name == name; });
}

TEST(RouteFlagHints, AreOfFlagsThatPorticoDoesNotHaveAndNameOnesThatItHas) {
  std::set<std::string_view> names;
  for (const auto hints : {SglangRouterFlagHints(), SmgFlagHints()}) {
    for (const RouteFlagHint& hint : hints) {
      EXPECT_TRUE(names.insert(hint.name).second) << hint.name << " is there twice";
      EXPECT_FALSE(IsRouteOptionName(hint.name)) << hint.name;
      EXPECT_NE(hint.flag.empty(), hint.note.empty()) << hint.name;
      EXPECT_TRUE(hint.flag.empty() || IsRouteOptionName(hint.flag)) << hint.flag;
      for (size_t at = hint.note.find("--"); at != std::string_view::npos;) {
        const size_t end = std::min(hint.note.find_first_of(" ,;)", at), hint.note.size());
        EXPECT_TRUE(IsRouteOptionName(hint.note.substr(at + 2, end - at - 2))) << hint.note;
        at = hint.note.find("--", end);
      }
    }
  }
}

TEST(RouteFlagHints, AreFoundByNameAndByTheBeginningOfAName) {
  ASSERT_NE(FindSmgFlagHint("model-alias"), nullptr);
  EXPECT_EQ(FindSmgFlagHint("model-alias")->flag, "aliases");
  ASSERT_NE(FindSmgFlagHint("mesh-peer-urls"), nullptr);
  EXPECT_EQ(FindSmgFlagHint("mesh-peer-urls")->name, "mesh-");
  ASSERT_NE(FindSmgFlagHint("epd"), nullptr);
  EXPECT_EQ(FindSmgFlagHint("epd")->name, "epd-disaggregation");
  EXPECT_EQ(FindSmgFlagHint("nonsense"), nullptr);
  EXPECT_EQ(FindSmgFlagHint(""), nullptr);
}

TEST(RouteFlagHints, AreSaidWithThePrefixThatFlagsHave) {
  EXPECT_EQ(NoSuchRouteFlag("model-alias", *FindSmgFlagHint("model-alias"), ""),
            "unknown flag --model-alias; here it is --aliases");
  EXPECT_EQ(NoSuchRouteFlag("sticky-sessions", *FindSmgFlagHint("sticky-sessions"), "router-"),
            "unknown flag --router-sticky-sessions: --router-policy manual keeps a routing key "
            "on its worker");
}

// Each has been looked up in `smg launch --help` of that release.
TEST(RouteFlagHints, AreThereForEachFlagOfSmgThatPorticoDoesNotHave) {
  for (const char* name : {"health-check-port",
                           "encode-policy",
                           "balance-token-usage-threshold",
                           "kv-index",
                           "worker-stall-secs",
                           "overload-token-usage-threshold",
                           "worker-wedge-secs",
                           "worker-stale-secs",
                           "worker-overload-waiting-requests",
                           "worker-overload-shed",
                           "worker-warmup-secs",
                           "disable-worker-overload-protection",
                           "worker-warmup-share",
                           "selection-policy",
                           "worker-warmup-divert-every",
                           "selection-temperature",
                           "overlap-decay",
                           "selection-accounting-ttl-ms",
                           "block-size",
                           "cache-boundaries",
                           "cache-index",
                           "cache-ttl-secs",
                           "routing-key-override",
                           "max-buffered-request-bytes",
                           "pd-admission-wait-secs",
                           "routing-key-headers",
                           "stream-body-stall-timeout-secs",
                           "enable-rl",
                           "rl-fanout-concurrency",
                           "dp-minimum-tokens-scheduler",
                           "rl-control-timeout-secs",
                           "epd-disaggregation",
                           "prefill-max-inflight-requests-per-worker",
                           "encode",
                           "prefill-queue-size",
                           "prefill-queue-timeout-secs",
                           "worker-startup-delay",
                           "job-queue-capacity",
                           "multimodal-tensor-transport",
                           "job-queue-concurrency",
                           "log-mm-timing",
                           "multimodal-max-inflight-bytes",
                           "mm-processing",
                           "mm-pixel-cache-mb",
                           "mm-per-request-image-limit",
                           "rdma-listen-ip",
                           "rdma-slot-ttl-s",
                           "mm-allow-private-media-hosts",
                           "log-json",
                           "discovery-provider",
                           "kv-connector-annotation",
                           "encode-selector",
                           "router-selector",
                           "kv-engine-id-annotation",
                           "model-id-from",
                           "model-alias",
                           "jemalloc-prof-dir",
                           "tenant-header-name",
                           "trust-tenant-header",
                           "storage-context-headers",
                           "schema-config",
                           "oracle-external-auth",
                           "header-read-timeout-secs",
                           "enable-wasm",
                           "zmq-engine-count",
                           "idle-connection-timeout-secs",
                           "parser",
                           "tenant-api-key",
                           "max-background-responses",
                           "enable-mesh",
                           "mesh-tls-key",
                           "priority-scheduler-enabled",
                           "redis-op-timeout-secs",
                           "postgres-op-timeout-secs",
                           "tenant-rate-limit-config",
                           "sticky-sessions",
                           "sticky-key-idle-secs",
                           "remove-unhealthy-workers",
                           "spill-abs-threshold",
                           "cache-match-threshold",
                           "disable-tokenizer-autoload",
                           "worker-auto-recovery",
                           "storage-hook-wasm-path",
                           "tokenizer-cache-l0-max-memory",
                           "history-memory-max-items"}) {
    EXPECT_NE(FindSmgFlagHint(name), nullptr) << name;
  }
}

}  // namespace
}  // namespace portico
