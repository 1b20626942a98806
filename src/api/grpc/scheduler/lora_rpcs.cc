#include "api/grpc/scheduler/lora_rpcs.h"

#include <fmt/format.h>

#include "api/grpc/native/control_rpcs.h"
#include "sglang/grpc/scheduler/sglang_scheduler.pb.h"
#include "text/utf8.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::grpc::scheduler;

constexpr size_t kMaxNameBytes = 4096;

Status CheckName(std::string_view field, const std::string& text) {
  if (!text.empty() && text.size() <= kMaxNameBytes && IsValidUtf8(text)) return OkStatus();
  return InvalidArgument(field, fmt::format("{} is required and must be a short text", field));
}

// An adapter's id, as this service's clients see it, is its name.
Status CheckId(const std::string& id, const std::string& name) {
  if (id.empty() || id == name) return OkStatus();
  return InvalidArgument("lora_id", "lora_id must be lora_name: adapters are known by their names");
}

StatusOr<EngineControl> ReadLoad(const pb::LoadLoRAAdapterRequest& request) {
  PORTICO_RETURN_IF_ERROR(CheckName("lora_name", request.lora_name()));
  PORTICO_RETURN_IF_ERROR(CheckName("lora_path", request.lora_path()));
  PORTICO_RETURN_IF_ERROR(CheckId(request.lora_id(), request.lora_name()));
  LoadLoraControl load;
  load.name = request.lora_name();
  load.path = request.lora_path();
  load.pinned = request.pinned();
  return EngineControl(std::move(load));
}

StatusOr<EngineControl> ReadUnload(const pb::UnloadLoRAAdapterRequest& request) {
  PORTICO_RETURN_IF_ERROR(CheckName("lora_name", request.lora_name()));
  PORTICO_RETURN_IF_ERROR(CheckId(request.lora_id(), request.lora_name()));
  return EngineControl(UnloadLoraControl{request.lora_name()});
}

// What was refused is an answer, for which the message has a place; an engine without adapters is an error.
template <typename Response>
Status Answer(RpcContext& context, const Status& done, Response* response) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, context.api.models->Find(""));
  const bool refused = done.code() == StatusCode::kInvalidArgument ||
                       done.code() == StatusCode::kNotFound ||
                       done.code() == StatusCode::kFailedPrecondition;
  if (!done.ok() && (!refused || !model->engine->info().can.lora)) return done;
  response->set_success(done.ok());
  if (!done.ok()) response->set_message(std::string(MessageOf(done)));
  for (const LoraAdapter& adapter : model->engine->adapters()) {
    response->add_loaded_lora_ids(adapter.name);
  }
  return OkStatus();
}

Status List(RpcContext& context, ShardContext&, const pb::ListLoadedLoRAAdaptersRequest&,
            pb::ListLoadedLoRAAdaptersResponse* response) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, context.api.models->Find(""));
  for (const LoraAdapter& adapter : model->engine->adapters()) {
    pb::LoadedLoRAAdapter& loaded = *response->add_loaded_adapters();
    loaded.set_lora_id(adapter.name);
    loaded.set_lora_name(adapter.name);
    loaded.set_lora_path(adapter.path);
  }
  return OkStatus();
}

}  // namespace

void AddLoraRpcs(RpcContext& context, const std::string& service) {
  AddControl(context, service + "LoadLoRAAdapter", ReadLoad, Answer<pb::LoadLoRAAdapterResponse>);
  AddControl(context, service + "UnloadLoRAAdapter", ReadUnload,
             Answer<pb::UnloadLoRAAdapterResponse>);
  AddUnary(context, service + "ListLoadedLoRAAdapters", List);
}

}  // namespace portico::api::rpc
