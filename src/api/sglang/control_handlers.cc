#include "api/sglang/control_handlers.h"

#include <memory>
#include <string>
#include <utility>

#include "api/common/control_fields.h"
#include "api/control_call.h"
#include "api/query.h"
#include "api/reply.h"
#include "service/control/each_engine.h"
#include "service/control/load_report.h"
#include "service/control/pause.h"
#include "text/json.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

void ReplyDone(net::Exchange& exchange, const ApiContext& api, const Status& status,
               std::string_view message) {
  if (!status.ok()) return ReplyError(exchange, api, status);
  ReplyJson(exchange, api, 200, Json(JsonObject{{"message", message}, {"status", "ok"}}).Dump());
}

// What a control route asks for, and of which model.
struct AskedControl {
  EngineControl control;
  std::string model;           // empty: all
  std::string mode = "abort";  // SGLang's default over HTTP
  bool torch_empty_cache = true;
};

constexpr FieldReader<AskedControl> kPauseFields[] = {
    {"mode", ReadText<AskedControl, &AskedControl::mode>},
    {"model", ReadText<AskedControl, &AskedControl::model>},
};
static_assert(IsSortedByName(kPauseFields));

constexpr FieldReader<AskedControl> kContinueFields[] = {
    {"model", ReadText<AskedControl, &AskedControl::model>},
    {"torch_empty_cache", ReadFlag<AskedControl, &AskedControl::torch_empty_cache>},
};
static_assert(IsSortedByName(kContinueFields));

StatusOr<AskedControl> ReadPause(const net::HttpRequest& request, simdjson::dom::parser& parser) {
  AskedControl asked;
  PORTICO_RETURN_IF_ERROR(ReadControl(request, parser, kPauseFields, {}, &asked));
  PORTICO_ASSIGN_OR_RETURN(const PauseMode mode, ParsePauseMode(asked.mode));
  asked.control = PauseControl{mode};
  return asked;
}

StatusOr<AskedControl> ReadContinue(const net::HttpRequest& request,
                                    simdjson::dom::parser& parser) {
  AskedControl asked;
  PORTICO_RETURN_IF_ERROR(ReadControl(request, parser, kContinueFields, {}, &asked));
  asked.control = ContinueControl{asked.torch_empty_cache};
  return asked;
}

void AnswerPause(ExchangePtr exchange, ShardContext& shard, const Status& status) {
  if (status.ok() && shard.api.on_pause_change) shard.api.on_pause_change();
  ReplyDone(*exchange, shard.api, status, "Generation is paused.");
}

void AnswerContinue(ExchangePtr exchange, ShardContext& shard, const Status& status) {
  if (status.ok() && shard.api.on_pause_change) shard.api.on_pause_change();
  ReplyDone(*exchange, shard.api, status, "Generation continues.");
}

template <StatusOr<AskedControl> (*kRead)(const net::HttpRequest&, simdjson::dom::parser&),
          void (*kAnswer)(ExchangePtr, ShardContext&, const Status&)>
void HandleControl(ExchangePtr exchange, ShardContext& shard) {
  const StatusOr<AskedControl> asked = kRead(exchange->request, shard.parser);
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
