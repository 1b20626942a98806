#include "api/sglang/control_handlers.h"

#include <memory>
#include <string>
#include <utility>

#include "api/control_call.h"
#include "api/model_name.h"
#include "api/query.h"
#include "api/reply.h"
#include "service/each_engine.h"
#include "service/load_report.h"
#include "service/pause.h"
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

// What a control route asks for, and of which model.
struct Asked {
  EngineControl control;
  std::string model;  // empty: all
};

StatusOr<Asked> ReadPause(const std::string& body) {
  PORTICO_ASSIGN_OR_RETURN(const Json request, ReadObject(body));
  const Json* mode = request.Find("mode");
  std::string word = "abort";  // SGLang's default over HTTP
  if (mode != nullptr && !mode->is_null()) {
    if (!mode->is_string()) return InvalidArgument("mode", "mode must be a string");
    word = mode->as_string();
  }
  PORTICO_ASSIGN_OR_RETURN(const PauseMode parsed, ParsePauseMode(word));
  PORTICO_ASSIGN_OR_RETURN(std::string model, ModelInBody(request));
  return Asked{PauseControl{parsed}, std::move(model)};
}

StatusOr<Asked> ReadContinue(const std::string& body) {
  PORTICO_ASSIGN_OR_RETURN(const Json request, ReadObject(body));
  PORTICO_ASSIGN_OR_RETURN(std::string model, ModelInBody(request));
  return Asked{ContinueControl{}, std::move(model)};
}

void AnswerPause(ExchangePtr exchange, ShardContext& shard, const Status& status) {
  if (status.ok() && shard.api.on_pause_change) shard.api.on_pause_change();
  ReplyDone(*exchange, shard.api, status, "Generation is paused.");
}

void AnswerContinue(ExchangePtr exchange, ShardContext& shard, const Status& status) {
  if (status.ok() && shard.api.on_pause_change) shard.api.on_pause_change();
  ReplyDone(*exchange, shard.api, status, "Generation goes on.");
}

template <StatusOr<Asked> (*kRead)(const std::string&),
          void (*kAnswer)(ExchangePtr, ShardContext&, const Status&)>
void HandleControl(ExchangePtr exchange, ShardContext& shard) {
  const StatusOr<Asked> asked = kRead(exchange->request.body);
  if (!asked.ok()) return ReplyError(*exchange, shard.api, asked.status());
  ControlEngines(*shard.api.models, asked->model, asked->control, Clock::now() + kControlPatience,
                 AnswerWhenDone(std::move(exchange), shard, kAnswer));
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

}  // namespace

void AddControlRoutes(RouteTable& routes) {
  routes.Add({.method = "POST",
              .path = "/pause_generation",
              .access = Access::kAdmin,
              .max_body_bytes = kControlBody,
              .handler = HandleControl<ReadPause, AnswerPause>});
  routes.Add({.method = "POST",
              .path = "/continue_generation",
              .access = Access::kAdmin,
              .max_body_bytes = kControlBody,
              .handler = HandleControl<ReadContinue, AnswerContinue>});
  routes.Add("GET", "/v1/loads", Access::kKey, HandleLoads<LoadsBody>);
  routes.Add("GET", "/get_load", Access::kKey, HandleLoads<OldLoadsBody>);
}

}  // namespace portico::api
