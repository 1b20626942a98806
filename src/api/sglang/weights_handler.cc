#include "api/sglang/weights_handler.h"

#include <memory>
#include <string>
#include <utility>

#include "api/model_name.h"
#include "api/openai/errors.h"
#include "api/planning.h"
#include "api/reply.h"
#include "service/weight_update.h"
#include "text/json.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

Status Update(const std::string& body, const ModelRegistry& models) {
  PORTICO_ASSIGN_OR_RETURN(const Json request, Json::Parse(body));
  const Json* path = request.Find("model_path");
  if (path == nullptr || !path->is_string()) {
    return InvalidArgument("model_path", "model_path is required and must be a string");
  }
  const Json* format = request.Find("load_format");
  if (format != nullptr && !format->is_null() && !format->is_string()) {
    return InvalidArgument("load_format", "load_format must be a string");
  }
  PORTICO_ASSIGN_OR_RETURN(const std::string model, ModelInBody(request));
  return UpdateWeights(models, model, path->as_string());
}

// The whole work is done where other routes plan, off the shard.
struct WeightsApi {
  struct Planned {
    Status status;
  };

  static StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser&,
                                   const PlanContext& context) {
    return Planned{Update(body, *context.api.models)};
  }

  // SGLang's answer has `success` and `message` at its top level, a refusal's too.
  static void Answer(ExchangePtr exchange, ShardContext& shard, const Planned& planned) {
    const Status& status = planned.status;
    Json body = JsonObject{
        {"success", status.ok()},
        {"message", status.ok() ? std::string_view("The weights are updated.") : MessageOf(status)},
        {"num_paused_requests", 0},
    };
    if (!status.ok()) body.Set("error", *Json::Parse(openai::ErrorBody(status))->Find("error"));
    ReplyJson(*exchange, shard.api, HttpStatus(status.code()), body.Dump());
  }
};

void HandleUpdateWeights(ExchangePtr exchange, ShardContext& shard) {
  if (!TakesJson(*exchange, shard.api) || PlanOnPool<WeightsApi>(exchange, shard)) return;
  ReplyError(*exchange, shard.api, Error(StatusCode::kResourceExhausted, "the server is busy"));
}

}  // namespace

void AddWeightsRoute(Router& router) {
  router.Add("POST", "/update_weights_from_disk", Access::kKey, HandleUpdateWeights);
}

}  // namespace portico::api
