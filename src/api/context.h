// What handlers work with: facts and services shared by all shards, and what each shard has of its own.
#pragma once

#include <simdjson.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/browser_rules.h"
#include "api/call.h"
#include "base/cpu_pool.h"
#include "base/log_limit.h"
#include "base/metrics.h"
#include "net/http/exchange.h"
#include "service/active_rids.h"
#include "service/control/load_report.h"
#include "service/generation/stream_hub.h"
#include "service/model_registry.h"
#include "service/plan/request_media.h"
#include "service/pooling/pooling_hub.h"
#include "service/service_metrics.h"
#include "text/json.h"

namespace portico::pipeline {
class Pipeline;
}

namespace portico::api {

struct ShardContext;

// Shared by all shards; thread safe after the start.
struct ApiContext {
  ModelRegistry* models = nullptr;
  Registry* registry = nullptr;
  ServiceMetrics* metrics = nullptr;
  CpuPool* pool = nullptr;
  // Speaks and listens; null: nothing here does. Set before the models are published.
  pipeline::Pipeline* pipeline = nullptr;
  std::string api_key;        // empty: no authentication
  std::string admin_api_key;  // of what operators call; empty: api_key is
  std::string cors_origin;    // empty: no CORS headers
  BrowserRules browser;
  Json server_info{JsonObject{}};  // what /get_server_info shows: options without secrets
  ActiveRids rids;
  LoadMeter loads;
  MediaLimits media;
  size_t max_client_batch_size = 8192;  // texts of one embedding, rerank or classify request
  bool log_requests = false;
  mutable LogLimit refusal_lines{10, std::chrono::seconds(1)};  // of log_requests
  std::string_view reasoning_field = "reasoning_content";       // what chat answers call reasoning
  bool incremental_streaming = false;  // of /generate, where the client does not say
  bool grpc_cumulative = false;        // of native gRPC streams, likewise
  std::atomic<bool> draining{false};
  std::atomic<bool> failed{false};  // loading has failed; the process is about to end
  // Called on any shard when engines were paused or went on. Set before the start; null: nobody
  // wants to know.
  std::function<void()> on_pause_change;
  std::vector<ShardContext*> shards;
};

// One a shard; touched on it only.
struct ShardContext {
  ShardContext(net::Shard& on_shard, ApiContext& context)
      : shard(on_shard), api(context), hub(on_shard), pooling_hub(on_shard), calls(on_shard) {}

  net::Shard& shard;
  ApiContext& api;
  StreamHub hub;
  PoolingHub pooling_hub;
  CallTable calls;
  simdjson::dom::parser parser;
  std::string scratch;  // empty between uses; shared, so that it stays in the caches
};

}  // namespace portico::api
