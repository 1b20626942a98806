#include "api/admin/health.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "api/admin/health_generate.h"
#include "api/model_name.h"
#include "api/reply.h"
#include "pipeline/coordinator/pipeline.h"
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
  const std::vector<const ServingModel*> all = api.models->models();
  const ServingModel* named = nullptr;
  if (!name.empty() || all.empty()) {
    auto found = api.models->Find(name);
    // A server of a pipeline alone has no models.
    const bool pipeline_alone = name.empty() && api.models->ready() && api.pipeline != nullptr;
    if (!found.ok() && !pipeline_alone) return found.status();
    if (found.ok()) named = *found;
  }
  const Status dead = Error(StatusCode::kUnavailable, "the engine failed");
  if (!name.empty()) return named->engine->load().healthy ? StatusOr<std::string>("ok\n") : dead;
  std::vector<const ServingModel*> died;
  for (const ServingModel* model : all) {
    if (!model->engine->load().healthy) died.push_back(model);
  }
  if (!all.empty() && died.size() == all.size()) return dead;
  if (const auto problems =
          api.pipeline != nullptr ? api.pipeline->Problems() : std::vector<std::string>();
      !problems.empty()) {
    return "degraded: " + absl::StrJoin(problems, "; ") + "\n";
  }
  return died.empty() ? "ok\n" : "ok, but the engine of " + TheirNames(died) + " failed\n";
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

void AddAdminRoutes(RouteTable& routes) {
  routes.Add("GET", "/health", Access::kOpen, HandleProbe<Health>);
  routes.Add("GET", "/readiness", Access::kOpen, HandleProbe<Readiness>);
  routes.Add("GET", "/ping", Access::kOpen, HandleProbe<Health>);
  routes.Add("GET", "/version", Access::kKey, HandleVersion);
  routes.Add("GET", "/metrics", Access::kOpen, HandleMetrics);
  routes.Add("GET", "/health_generate", Access::kKey, HandleHealthGenerate);
}

}  // namespace portico::api
