#include "api/sglang/engine_routes.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/common/control_fields.h"
#include "api/control_call.h"
#include "api/model_name.h"
#include "api/planning.h"
#include "api/reply.h"
#include "api/sglang/control_body.h"
#include "api/sglang/lora_handlers.h"
#include "api/sglang/unserved_routes.h"
#include "service/control/each_engine.h"
#include "service/control/weight_update.h"
#include "text/json.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

constexpr int64_t kMaxCapacity = int64_t{1} << 40;
constexpr size_t kMaxWeightNameBytes = 256;

// A route whose body is a message of the scheduler's protocol, field by field.
struct NativeRoute {
  const char* path;
  const char* message;
  const char* fields = nullptr;  // those of a route without a body
  bool gets = true;              // also by GET, as SGLang has it
  bool replies = true;
  bool takes_long = false;  // as long as reading weights
  // The member that names the weights which the model has after it.
  const char* version = nullptr;
};

constexpr NativeRoute kNativeRoutes[] = {
    {"/add_external_corpus", "AddExternalCorpusReqInput", nullptr, false, true, true},
    {"/begin_weight_update", "BeginWeightUpdateReqInput", nullptr, false, true, true},
    {"/clear_hicache_storage_backend", "ClearHiCacheReqInput", "{}"},  // the old name
    {"/destroy_weights_update_group", "DestroyWeightsUpdateGroupReqInput", nullptr, false, true,
     true},
    {"/dump_expert_distribution_record", "ExpertDistributionReq", R"({"action":3})"},
    {"/end_weight_update", "EndWeightUpdateReqInput", nullptr, false, true, true},
    {"/freeze_gc", "FreezeGCReq", nullptr, true, false},
    {"/get_hicache_l3_cache_layout", "GetHiCacheL3LayoutReq", "{}"},
    {"/get_internal_state", "GetInternalStateReq"},
    {"/get_weights_by_name", "GetWeightsByNameReqInput"},
    {"/hicache/storage-backend/clear", "ClearHiCacheReqInput", "{}", false},
    {"/init_weights_send_group_for_remote_instance",
     "InitWeightsSendGroupForRemoteInstanceReqInput", nullptr, false, true, true},
    {"/init_weights_update_group", "InitWeightsUpdateGroupReqInput", nullptr, false, true, true},
    {"/list_external_corpora", "ListExternalCorporaReqInput", "{}"},
    {"/pd_role_switch", "PdRoleSwitchReqInput", nullptr, false},
    {"/release_memory_occupation", "ReleaseMemoryOccupationReqInput", nullptr, true, true, true},
    {"/remove_external_corpus", "RemoveExternalCorpusReqInput", nullptr, false},
    {"/resume_memory_occupation", "ResumeMemoryOccupationReqInput", nullptr, true, true, true},
    {"/send_weights_to_remote_instance", "SendWeightsToRemoteInstanceReqInput", nullptr, false,
     true, true},
    {"/set_internal_state", "SetInternalStateReq", nullptr, false},
    {"/slow_down", "SlowDownReqInput"},
    {"/start_expert_distribution_record", "ExpertDistributionReq", R"({"action":1})"},
    {"/stop_expert_distribution_record", "ExpertDistributionReq", R"({"action":2})"},
    {"/update_weight_version", "UpdateWeightVersionReqInput", nullptr, false, true, false,
     "new_version"},
    {"/update_weights_from_distributed", "UpdateWeightsFromDistributedReqInput", nullptr, false,
     true, true, "weight_version"},
    {"/update_weights_from_ipc", "UpdateWeightsFromIPCReqInput", nullptr, false, true, true,
     "weight_version"},
    {"/update_weights_from_tensor", "UpdateWeightsFromTensorReqInput", nullptr, false, true, true,
     "weight_version"},
    {"/weights_checker", "CheckWeightsReqInput", nullptr, true, true, true},
};

// What is to be told of a call once it is done.
struct NativeAsked {
  std::shared_ptr<NativeCall::Replies> replies;
  std::string model;
  const char* version_field = nullptr;
  std::string version;  // empty: the weights keep theirs
};

// What the scheduler said: its `success` and `message` where it has them, and every rank's answer.
void AnswerNative(ExchangePtr exchange, ShardContext& shard, const Status& status,
                  const NativeAsked& asked) {
  if (!status.ok()) return ReplyError(*exchange, shard.api, status);
  bool success = true;
  std::string message;
  JsonArray answers;
  for (const std::string& text : asked.replies->Take()) {
    StatusOr<Json> answer = Json::Parse(text);
    if (!answer.ok()) return ReplyError(*exchange, shard.api, answer.status());
    const bool good = answer->GetBool("success", true);
    if (message.empty() || (success && !good)) message = answer->GetString("message");
    success = success && good;
    answers.push_back(*std::move(answer));
  }
  Json body(JsonObject{{"success", success}});
  if (success && !asked.version.empty()) {
    NoteWeightVersion(*shard.api.models, asked.model, asked.version);
    if (!message.empty()) message += ' ';
    message += fmt::format("Weight version updated to {}.", asked.version);
    body.Set(asked.version_field, asked.version);
  }
  body.Set("message", std::move(message));
  body.Set("replies", std::move(answers));
  ReplyJson(*exchange, shard.api, success ? 200 : 400, body.Dump());
}

// The name that a call gives the weights; empty: none.
StatusOr<std::string> ReadWeightName(const Json& request, std::string_view field) {
  const Json* value = request.Find(field);
  if (value == nullptr || value->is_null()) return std::string();
  if (value->is_string() && !value->as_string().empty() &&
      value->as_string().size() <= kMaxWeightNameBytes) {
    return value->as_string();
  }
  return InvalidArgument(
      field, fmt::format("{} must be a text of 1 to {} bytes", field, kMaxWeightNameBytes));
}

StatusOr<NativeCall> ReadNative(const NativeRoute& route, Json body, NativeAsked* asked) {
  PORTICO_ASSIGN_OR_RETURN(asked->model, ModelInBody(body));
  if (route.version != nullptr) {
    asked->version_field = route.version;
    PORTICO_ASSIGN_OR_RETURN(asked->version, ReadWeightName(body, route.version));
  }
  NativeCall call;
  call.message = route.message;
  call.replies_expected = route.replies;
  call.replies = asked->replies = std::make_shared<NativeCall::Replies>();
  if (route.fields != nullptr) {
    call.fields = route.fields;
  } else {
    std::erase_if(body.as_object(), [](const auto& member) { return member.first == "model"; });
    call.fields = body.Dump();
  }
  return call;
}

void RunNative(const NativeRoute& route, NativeCall call, NativeAsked asked, ExchangePtr exchange,
               ShardContext& shard) {
  const std::string model = asked.model;
  ControlEngines(*shard.api.models, model, std::move(call),
                 Clock::now() + (route.takes_long ? kWeightsPatience : kControlPatience),
                 AnswerWhenDone(std::move(exchange), shard,
                                [asked = std::move(asked)](ExchangePtr to, ShardContext& on,
                                                           const Status& status) {
                                  AnswerNative(std::move(to), on, status, asked);
                                }));
}

using ReadNativeCall = std::pair<NativeCall, NativeAsked>;

// Tensors in text are long: they are read on the pool.
void HandleLongNative(const NativeRoute& route, ExchangePtr exchange, ShardContext& shard) {
  const Status query = CheckQueryNames(exchange->request, {});
  if (!query.ok()) return ReplyError(*exchange, shard.api, query);
  auto prepare = [&route](const std::string& text) -> StatusOr<ReadNativeCall> {
    ReadNativeCall read;
    PORTICO_ASSIGN_OR_RETURN(Json body, ControlObject(text));
    PORTICO_ASSIGN_OR_RETURN(read.first, ReadNative(route, std::move(body), &read.second));
    return read;
  };
  auto answer = [&route](ExchangePtr to, ShardContext& on, StatusOr<ReadNativeCall> read) {
    if (!read.ok()) return ReplyError(*to, on.api, read.status());
    RunNative(route, std::move(read->first), std::move(read->second), std::move(to), on);
  };
  if (PlanOnPool(exchange, exchange->request.body, shard, prepare, answer, LeaseEnds::kTaken))
    return;
  ReplyError(*exchange, shard.api, PoolIsFull());
}

void HandleNative(const NativeRoute& route, ExchangePtr exchange, ShardContext& shard) {
  if (route.takes_long && exchange->request.body.size() > kLongBody) {
    return HandleLongNative(route, std::move(exchange), shard);
  }
  StatusOr<Json> body = route.fields != nullptr ? ControlMembers(exchange->request, {"model"})
                                                : ControlObject(exchange->request);
  if (!body.ok()) return ReplyError(*exchange, shard.api, body.status());
  NativeAsked asked;
  StatusOr<NativeCall> call = ReadNative(route, *std::move(body), &asked);
  if (!call.ok()) return ReplyError(*exchange, shard.api, call.status());
  RunNative(route, *std::move(call), std::move(asked), std::move(exchange), shard);
}

void HandleOpenSession(ExchangePtr exchange, ShardContext& shard) {
  const auto read = [&]() -> StatusOr<std::pair<OpenSessionControl, std::string>> {
    PORTICO_ASSIGN_OR_RETURN(
        const Json request,
        ControlMembers(exchange->request,
                       {"capacity_of_str_len", "model", "session_id", "streaming", "timeout"}));
    PORTICO_ASSIGN_OR_RETURN(std::string model, ModelInBody(request));
    OpenSessionControl open;
    const Json* capacity = request.Find("capacity_of_str_len");
    if (capacity == nullptr || !capacity->is_int() || capacity->as_int() <= 0 ||
        capacity->as_int() > kMaxCapacity) {
      return InvalidArgument("capacity_of_str_len",
                             "capacity_of_str_len is required and must be a positive integer");
    }
    open.capacity = capacity->as_int();
    const Json* id = request.Find("session_id");
    if (id == nullptr || id->is_null()) {
      open.id = NewRequestId();
    } else {
      PORTICO_ASSIGN_OR_RETURN(open.id, ControlName(request, "session_id"));
    }
    const Json* streaming = request.Find("streaming");
    if (streaming != nullptr && !streaming->is_null()) {
      PORTICO_ASSIGN_OR_RETURN(open.streaming, ControlFlag(request, "streaming"));
    }
    const Json* timeout = request.Find("timeout");
    if (timeout != nullptr && !timeout->is_null()) {
      if (!timeout->is_number() || !(timeout->as_double() > 0) || timeout->as_double() > 1e9) {
        return InvalidArgument("timeout", "timeout must be a positive number of seconds");
      }
      open.timeout = timeout->as_double();
    }
    return std::pair(std::move(open), std::move(model));
  };
  auto asked = read();
  if (!asked.ok()) return ReplyError(*exchange, shard.api, asked.status());
  const std::string id = asked->first.id;
  ControlEngines(*shard.api.models, asked->second, std::move(asked->first),
                 Clock::now() + kControlPatience,
                 AnswerWhenDone(std::move(exchange), shard,
                                [id](ExchangePtr to, ShardContext& on, const Status& status) {
                                  if (!status.ok()) return ReplyError(*to, on.api, status);
                                  ReplyJson(*to, on.api, 200, Json(id).Dump());
                                }));
}

void HandleCloseSession(ExchangePtr exchange, ShardContext& shard) {
  const auto read = [&]() -> StatusOr<std::pair<std::string, std::string>> {
    PORTICO_ASSIGN_OR_RETURN(const Json request,
                             ControlMembers(exchange->request, {"model", "session_id"}));
    PORTICO_ASSIGN_OR_RETURN(std::string model, ModelInBody(request));
    PORTICO_ASSIGN_OR_RETURN(std::string id, ControlName(request, "session_id"));
    return std::pair(std::move(id), std::move(model));
  };
  const auto asked = read();
  if (!asked.ok()) return ReplyError(*exchange, shard.api, asked.status());
  ControlEngines(*shard.api.models, asked->second, CloseSessionControl{asked->first},
                 Clock::now() + kControlPatience,
                 AnswerWhenDone(std::move(exchange), shard,
                                [](ExchangePtr to, ShardContext& on, const Status& status) {
                                  if (!status.ok()) return ReplyError(*to, on.api, status);
                                  ReplyJson(*to, on.api, 200, "{\"success\":true}");
                                }));
}

// What SGLang keeps its cache in beside the memory. A backend can be code that the body names: SGLang takes one only
// where operators have a key of their own.
void HandleStorage(const NativeRoute& route, ExchangePtr exchange, ShardContext& shard) {
  if (shard.api.admin_api_key.empty()) {
    return ReplyError(*exchange, shard.api,
                      Error(StatusCode::kFailedPrecondition,
                            "the storage of the cache can be changed and shown only where the "
                            "server has an --admin-api-key"));
  }
  HandleNative(route, std::move(exchange), shard);
}

void AddHiCacheRoutes(RouteTable& routes) {
  static constexpr NativeRoute kAttach{"/hicache/storage-backend", "AttachHiCacheStorageReqInput"};
  static constexpr NativeRoute kDetach{"/hicache/storage-backend", "DetachHiCacheStorageReqInput",
                                       "{}"};
  routes.Add(
      "PUT", kAttach.path, Access::kAdmin,
      [](ExchangePtr exchange, ShardContext& shard) {
        HandleStorage(kAttach, std::move(exchange), shard);
      },
      kControlBody);
  routes.Add(
      "DELETE", kDetach.path, Access::kAdmin,
      [](ExchangePtr exchange, ShardContext& shard) {
        HandleStorage(kDetach, std::move(exchange), shard);
      },
      kControlBody);
}

}  // namespace

void AddEngineRoutes(RouteTable& routes) {
  AddHiCacheRoutes(routes);
  AddUnservedRoutes(routes);
  for (const NativeRoute& route : kNativeRoutes) {
    const RouteHandler handler = [&route](ExchangePtr exchange, ShardContext& shard) {
      HandleNative(route, std::move(exchange), shard);
    };
    routes.Add("POST", route.path, Access::kAdmin, handler, route.takes_long ? 0 : kControlBody);
    if (route.gets) routes.Add("GET", route.path, Access::kAdmin, handler);
  }
  routes.Add(
      "PUT", "/set_internal_state", Access::kAdmin,
      [](ExchangePtr exchange, ShardContext& shard) {
        static constexpr NativeRoute kRoute{"/set_internal_state", "SetInternalStateReq"};
        HandleNative(kRoute, std::move(exchange), shard);
      },
      kControlBody);
  for (const char* method : {"GET", "POST"}) {
    routes.Add(method, "/open_session", Access::kKey, HandleOpenSession, kControlBody);
    routes.Add(method, "/close_session", Access::kKey, HandleCloseSession, kControlBody);
  }
  AddLoraRoutes(routes);
}

}  // namespace portico::api
