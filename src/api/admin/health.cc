#include "api/admin/health.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/admin/health_generate.h"
#include "api/model_name.h"
#include "api/reply.h"
#include "text/json_writer.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

std::string TheirNames(const std::vector<const ServingModel*>& models) {
  std::string names;
  for (const ServingModel* model : models) names += (names.empty() ? "`" : ", `") + model->id + "`";
  return names;
}

// What a probe says of the server, or of the model that it names: while an engine lives the server is
// healthy, so that a dead one does not take the others out of service.
StatusOr<std::string> Health(const ApiContext& api, const net::HttpRequest& request) {
  PORTICO_ASSIGN_OR_RETURN(const std::string name, ModelInQuery(request.query));
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* named, api.models->Find(name));
  const Status dead = Error(StatusCode::kUnavailable, "the engine has died");
  if (!name.empty()) return named->engine->load().healthy ? StatusOr<std::string>("ok\n") : dead;
  const std::vector<const ServingModel*> all = api.models->models();
  std::vector<const ServingModel*> died;
  for (const ServingModel* model : all) {
    if (!model->engine->load().healthy) died.push_back(model);
  }
  if (died.size() == all.size()) return dead;
  return died.empty() ? "ok\n" : "ok, but the engine has died of " + TheirNames(died) + "\n";
}

StatusOr<std::string> Readiness(const ApiContext& api, const net::HttpRequest& request) {
  if (api.draining) return Error(StatusCode::kUnavailable, "the server is draining");
  return Health(api, request);
}

template <StatusOr<std::string> (*kProbe)(const ApiContext&, const net::HttpRequest&)>
void HandleProbe(ExchangePtr exchange, ShardContext& shard) {
  StatusOr<std::string> answer = kProbe(shard.api, exchange->request);
  if (!answer.ok()) return ReplyError(*exchange, shard.api, answer.status());
  ReplyText(*exchange, shard.api, 200, *std::move(answer));
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
  router.Add("GET", "/health", Access::kOpen, HandleProbe<Health>);
  router.Add("GET", "/readiness", Access::kOpen, HandleProbe<Readiness>);
  router.Add("GET", "/ping", Access::kOpen, HandleProbe<Health>);
  router.Add("GET", "/version", Access::kKey, HandleVersion);
  router.Add("GET", "/metrics", Access::kOpen, HandleMetrics);
  router.Add("GET", "/health_generate", Access::kKey, HandleHealthGenerate);
}

}  // namespace portico::api
