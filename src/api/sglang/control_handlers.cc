#include "api/sglang/control_handlers.h"

#include <memory>
#include <string>
#include <utility>

#include "api/model_name.h"
#include "api/query.h"
#include "api/reply.h"
#include "service/load_report.h"
#include "service/pause.h"
#include "service/profiling.h"
#include "text/json.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

// Many clients send no body where all fields have defaults.
StatusOr<Json> ReadObject(const std::string& body) {
  if (body.empty()) return Json(JsonObject{});
  PORTICO_ASSIGN_OR_RETURN(Json value, Json::Parse(body));
  if (!value.is_object()) return InvalidArgument("", "the body must be a JSON object");
  return value;
}

void ReplyDone(net::Exchange& exchange, const ApiContext& api, const Status& status,
               std::string_view message) {
  if (!status.ok()) return ReplyError(exchange, api, status);
  ReplyJson(exchange, api, 200, Json(JsonObject{{"message", message}, {"status", "ok"}}).Dump());
}

Status Pause(const std::string& body, const ModelRegistry& models) {
  PORTICO_ASSIGN_OR_RETURN(const Json request, ReadObject(body));
  const Json* mode = request.Find("mode");
  std::string word = "abort";  // SGLang's default over HTTP
  if (mode != nullptr && !mode->is_null()) {
    if (!mode->is_string()) return InvalidArgument("mode", "mode must be a string");
    word = mode->as_string();
  }
  PORTICO_ASSIGN_OR_RETURN(const PauseMode parsed, ParsePauseMode(word));
  PORTICO_ASSIGN_OR_RETURN(const std::string model, ModelInBody(request));
  return PauseEngines(models, model, parsed);
}

void ReplyPause(net::Exchange& exchange, const ApiContext& api, const Status& status,
                std::string_view message) {
  if (status.ok() && api.on_pause_change) api.on_pause_change();
  ReplyDone(exchange, api, status, message);
}

void HandlePause(ExchangePtr exchange, ShardContext& shard) {
  ReplyPause(*exchange, shard.api, Pause(exchange->request.body, *shard.api.models),
             "Generation is paused.");
}

Status Continue(const std::string& body, const ModelRegistry& models) {
  PORTICO_ASSIGN_OR_RETURN(const Json request, ReadObject(body));
  PORTICO_ASSIGN_OR_RETURN(const std::string model, ModelInBody(request));
  return ContinueEngines(models, model);
}

void HandleContinue(ExchangePtr exchange, ShardContext& shard) {
  ReplyPause(*exchange, shard.api, Continue(exchange->request.body, *shard.api.models),
             "Generation goes on.");
}

StatusOr<JsonArray> ReadLoads(const net::HttpRequest& request, ApiContext& api) {
  PORTICO_RETURN_IF_ERROR(api.models->Find("").status());
  PORTICO_ASSIGN_OR_RETURN(const auto rank, QueryInt(request.query, "dp_rank"));
  PORTICO_ASSIGN_OR_RETURN(const auto include, QueryValue(request.query, "include"));
  PORTICO_ASSIGN_OR_RETURN(const LoadParts parts, LoadParts::Parse(include.value_or("")));
  return LoadReports(*api.models, api.loads, rank, parts);
}

template <Json (*kBody)(JsonArray)>
void HandleLoads(ExchangePtr exchange, ShardContext& shard) {
  StatusOr<JsonArray> loads = ReadLoads(exchange->request, shard.api);
  if (!loads.ok()) return ReplyError(*exchange, shard.api, loads.status());
  ReplyJson(*exchange, shard.api, 200, kBody(*std::move(loads)).Dump());
}

template <Status (*kCall)(const ModelRegistry&)>
void HandleProfile(ExchangePtr exchange, ShardContext& shard) {
  const StatusOr<Json> body = ReadObject(exchange->request.body);
  const Status status = body.ok() ? kCall(*shard.api.models) : body.status();
  ReplyDone(*exchange, shard.api, status, "");
}

}  // namespace

void AddControlRoutes(Router& router) {
  router.Add("POST", "/pause_generation", Access::kKey, HandlePause);
  router.Add("POST", "/continue_generation", Access::kKey, HandleContinue);
  router.Add("GET", "/v1/loads", Access::kKey, HandleLoads<LoadsBody>);
  router.Add("GET", "/get_load", Access::kKey, HandleLoads<OldLoadsBody>);
  for (const char* method : {"GET", "POST"}) {
    router.Add(method, "/start_profile", Access::kKey, HandleProfile<StartProfile>);
    router.Add(method, "/stop_profile", Access::kKey, HandleProfile<StopProfile>);
  }
}

}  // namespace portico::api
