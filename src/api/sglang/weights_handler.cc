#include "api/sglang/weights_handler.h"

#include <memory>
#include <string>
#include <utility>

#include "api/control_call.h"
#include "api/model_name.h"
#include "api/openai/errors.h"
#include "api/reply.h"
#include "service/each_engine.h"
#include "service/weight_update.h"
#include "text/json.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

constexpr size_t kMaxVersionBytes = 256;

struct Asked {
  UpdateWeightsControl update;
  std::string model;  // empty: the default one
};

StatusOr<Asked> Read(const std::string& body) {
  PORTICO_ASSIGN_OR_RETURN(const Json request, Json::Parse(body));
  const Json* path = request.Find("model_path");
  if (path == nullptr || !path->is_string()) {
    return InvalidArgument("model_path", "model_path is required and must be a string");
  }
  const Json* format = request.Find("load_format");
  if (format != nullptr && !format->is_null() && !format->is_string()) {
    return InvalidArgument("load_format", "load_format must be a string");
  }
  Asked asked;
  PORTICO_ASSIGN_OR_RETURN(asked.model, ModelInBody(request));
  asked.update.path = path->as_string();
  asked.update.load_format = request.GetString("load_format");
  const Json* version = request.Find("weight_version");
  if (version != nullptr && !version->is_null()) {
    if (!version->is_string() || version->as_string().size() > kMaxVersionBytes) {
      return InvalidArgument("weight_version", "weight_version must be a short string");
    }
    asked.update.weight_version = version->as_string();
  }
  return asked;
}

// Those that a pause keeps from being computed, as of now.
int64_t PausedRequests(const ApiContext& api) {
  int64_t paused = 0;
  for (const ServingModel* model : api.models->models()) {
    const EngineLoad load = model->engine->load();
    if (load.paused) paused += load.running + load.waiting;
  }
  return paused;
}

// SGLang's answer has `success` and `message` at its top level, a refusal's too.
void Answer(ExchangePtr exchange, ShardContext& shard, const Status& status) {
  Json body = JsonObject{
      {"success", status.ok()},
      {"message", status.ok() ? std::string_view("The weights are updated.") : MessageOf(status)},
      {"num_paused_requests", PausedRequests(shard.api)},
  };
  if (!status.ok()) body.Set("error", *Json::Parse(openai::ErrorBody(status))->Find("error"));
  ReplyJson(*exchange, shard.api, HttpStatus(status.code()), body.Dump());
}

void HandleUpdateWeights(ExchangePtr exchange, ShardContext& shard) {
  StatusOr<Asked> asked = Read(exchange->request.body);
  if (!asked.ok()) return Answer(std::move(exchange), shard, asked.status());
  UpdateWeights(*shard.api.models, asked->model, std::move(asked->update),
                Clock::now() + kWeightsPatience,
                AnswerWhenDone(std::move(exchange), shard, Answer));
}

}  // namespace

void AddWeightsRoute(RouteTable& routes) {
  routes.Add({.method = "POST",
              .path = "/update_weights_from_disk",
              .access = Access::kAdmin,
              .max_body_bytes = kControlBody,
              .handler = HandleUpdateWeights});
}

}  // namespace portico::api
