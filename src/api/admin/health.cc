#include "api/admin/health.h"

#include <memory>
#include <string>
#include <utility>

#include "api/admin/health_generate.h"
#include "api/reply.h"
#include "text/json_writer.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

bool AllHealthy(const ApiContext& api) {
  for (const ServingModel* model : api.models->models()) {
    if (!model->engine->load().healthy) return false;
  }
  return true;
}

// 503 while loading and after an engine has died.
Status Health(const ApiContext& api) {
  if (!api.models->ready()) return Error(StatusCode::kUnavailable, "the model is still loading");
  if (!AllHealthy(api)) return Error(StatusCode::kUnavailable, "the engine has died");
  return OkStatus();
}

Status Readiness(const ApiContext& api) {
  if (api.draining) return Error(StatusCode::kUnavailable, "the server is draining");
  return Health(api);
}

void ReplyProbe(ExchangePtr exchange, const ApiContext& api, const Status& status) {
  if (status.ok()) return ReplyText(*exchange, api, 200, "ok\n");
  ReplyError(*exchange, api, status);
}

void HandleVersion(ExchangePtr exchange, ShardContext& shard) {
  std::string body;
  JsonWriter(&body).BeginObject().Key("version").String(PORTICO_VERSION).EndObject();
  ReplyJson(*exchange, shard.api, 200, std::move(body));
}

void HandleMetrics(ExchangePtr exchange, ShardContext& shard) {
  net::HttpResponse response =
      Head(*exchange, shard.api, 200, "text/plain; version=0.0.4; charset=utf-8");
  shard.api.registry->Render(&response.body);
  exchange->Respond(std::move(response));
}

}  // namespace

void AddAdminRoutes(Router& router) {
  router.Add("GET", "/health", Access::kOpen, [](ExchangePtr exchange, ShardContext& shard) {
    ReplyProbe(std::move(exchange), shard.api, Health(shard.api));
  });
  router.Add("GET", "/readiness", Access::kOpen, [](ExchangePtr exchange, ShardContext& shard) {
    ReplyProbe(std::move(exchange), shard.api, Readiness(shard.api));
  });
  router.Add("GET", "/ping", Access::kOpen, [](ExchangePtr exchange, ShardContext& shard) {
    ReplyProbe(std::move(exchange), shard.api, Health(shard.api));
  });
  router.Add("GET", "/version", Access::kKey, HandleVersion);
  router.Add("GET", "/metrics", Access::kOpen, HandleMetrics);
  router.Add("GET", "/health_generate", Access::kKey, HandleHealthGenerate);
}

}  // namespace portico::api
