#include "api/sglang/lora_handlers.h"

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "api/common/control_fields.h"
#include "api/common/error_body.h"
#include "api/control_call.h"
#include "api/model_name.h"
#include "api/planning.h"
#include "api/reply.h"
#include "api/sglang/control_body.h"
#include "service/control/each_engine.h"
#include "text/json.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

// SGLang's answer: what is loaded now, and why not.
void AnswerLora(ExchangePtr exchange, ShardContext& shard, const std::string& model,
                const Status& status) {
  Json loaded(JsonObject{});
  if (const auto found = shard.api.models->Find(model); found.ok()) {
    for (const LoraAdapter& adapter : (*found)->engine->adapters()) {
      loaded.Set(adapter.name, adapter.path);
    }
  }
  Json body(JsonObject{{"success", status.ok()}});
  body.Set("loaded_adapters", std::move(loaded));
  if (!status.ok()) {
    body.Set("error_message", MessageOf(status));
    body.Set("error", *Json::Parse(ErrorBody(status))->Find("error"));
  }
  ReplyJson(*exchange, shard.api, status.ok() ? 200 : HttpStatus(status.code()), body.Dump());
}

template <typename Control>
StatusOr<Control> ReadLora(const Json& request) {
  Control control;
  PORTICO_ASSIGN_OR_RETURN(control.name, ControlName(request, "lora_name"));
  if constexpr (std::is_same_v<Control, LoadLoraControl>) {
    PORTICO_ASSIGN_OR_RETURN(control.path, ControlName(request, "lora_path"));
    PORTICO_ASSIGN_OR_RETURN(control.pinned, ControlFlag(request, "pinned"));
  }
  return control;
}

void RunLora(EngineControl control, std::string model, ExchangePtr exchange, ShardContext& shard) {
  const std::string_view name = model;
  ControlEngines(*shard.api.models, name, control, Clock::now() + kWeightsPatience,
                 AnswerWhenDone(std::move(exchange), shard,
                                [model](ExchangePtr to, ShardContext& on, const Status& status) {
                                  AnswerLora(std::move(to), on, model, status);
                                }));
}

template <typename Control>
void HandleLora(ExchangePtr exchange, ShardContext& shard) {
  const StatusOr<Json> request =
      std::is_same_v<Control, LoadLoraControl>
          ? ControlMembers(exchange->request, {"lora_name", "lora_path", "model", "pinned"})
          : ControlMembers(exchange->request, {"lora_name", "model"});
  if (!request.ok()) return ReplyError(*exchange, shard.api, request.status());
  StatusOr<std::string> model = ModelInBody(*request);
  if (!model.ok()) return ReplyError(*exchange, shard.api, model.status());
  StatusOr<Control> control = ReadLora<Control>(*request);
  if (!control.ok()) return ReplyError(*exchange, shard.api, control.status());
  RunLora(*std::move(control), *std::move(model), std::move(exchange), shard);
}

// The other members are the engine's.
StatusOr<LoadLoraControl> ReadLoraTensors(Json request) {
  LoadLoraControl control;
  PORTICO_ASSIGN_OR_RETURN(control.name, ControlName(request, "lora_name"));
  PORTICO_ASSIGN_OR_RETURN(control.pinned, ControlFlag(request, "pinned"));
  control.path = "__tensor__";  // SGLang's word for it
  if (const Json* id = request.Find("lora_id"); id != nullptr && !id->is_null()) {
    return InvalidArgument("lora_id", "lora_id is chosen here");
  }
  std::erase_if(request.as_object(), [](const auto& member) {
    return member.first == "lora_name" || member.first == "pinned" || member.first == "model" ||
           member.first == "lora_id";
  });
  control.tensors = request.Dump();
  return control;
}

using AskedLora = std::pair<LoadLoraControl, std::string>;  // and the model

// Tensors in text are long: they are read on the pool.
void HandleLoraTensors(ExchangePtr exchange, ShardContext& shard) {
  const Status query = CheckQueryNames(exchange->request, {});
  if (!query.ok()) return ReplyError(*exchange, shard.api, query);
  auto prepare = [](const std::string& body) -> StatusOr<AskedLora> {
    PORTICO_ASSIGN_OR_RETURN(Json request, ControlObject(body));
    PORTICO_ASSIGN_OR_RETURN(std::string model, ModelInBody(request));
    PORTICO_ASSIGN_OR_RETURN(LoadLoraControl control, ReadLoraTensors(std::move(request)));
    return AskedLora(std::move(control), std::move(model));
  };
  auto answer = [](ExchangePtr to, ShardContext& on, StatusOr<AskedLora> asked) {
    if (!asked.ok()) return ReplyError(*to, on.api, asked.status());
    RunLora(std::move(asked->first), std::move(asked->second), std::move(to), on);
  };
  if (PlanOnPool(exchange, exchange->request.body, shard, prepare, answer, LeaseEnds::kTaken))
    return;
  ReplyError(*exchange, shard.api, PoolIsFull());
}

}  // namespace

void AddLoraRoutes(RouteTable& routes) {
  routes.Add("POST", "/load_lora_adapter", Access::kAdmin, HandleLora<LoadLoraControl>,
             kControlBody);
  routes.Add("POST", "/load_lora_adapter_from_tensors", Access::kAdmin, HandleLoraTensors);
  routes.Add("POST", "/unload_lora_adapter", Access::kAdmin, HandleLora<UnloadLoraControl>,
             kControlBody);
}

}  // namespace portico::api
