#include "api/grpc/native/generate_rpcs.h"

#include <utility>

#include "api/grpc/native/decode_native.h"
#include "api/grpc/native/native_messages.h"
#include "api/grpc/stream_call.h"
#include "api/reply.h"
#include "api/stream_form.h"
#include "service/model_task.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;

struct PlannedRpc {
  const ServingModel* model = nullptr;
  NativePlan plan;
  NativeMessages::Form form = NativeMessages::Form::kText;
};

StatusOr<PlannedRpc> Plan(const RpcContext& context, StatusOr<NativeGenerateRequest> request,
                          NativeMessages::Form form) {
  if (!request.ok()) return request.status();
  PlannedRpc planned;
  planned.form = form;
  PORTICO_ASSIGN_OR_RETURN(planned.model,
                           FindAble(*context.api.models, request->model, CheckGenerates));
  PORTICO_ASSIGN_OR_RETURN(planned.plan, PlanNative(*planned.model, *request, NewRequestId));
  PORTICO_RETURN_IF_ERROR(ReadMedia(context.api, &planned));
  return planned;
}

StatusOr<PlannedRpc> PrepareText(const RpcContext& context, const std::string& bytes) {
  SmallArena memory;
  PORTICO_ASSIGN_OR_RETURN(auto* request, memory.Parse<pb::TextGenerateRequest>(bytes));
  return Plan(context, DecodeTextGenerate(request), NativeMessages::Form::kText);
}

StatusOr<PlannedRpc> PrepareIds(const RpcContext& context, const std::string& bytes) {
  SmallArena memory;
  PORTICO_ASSIGN_OR_RETURN(auto* request, memory.Parse<pb::GenerateRequest>(bytes));
  const auto form =
      request->return_text() ? NativeMessages::Form::kIdsAndText : NativeMessages::Form::kIds;
  return Plan(context, DecodeGenerate(request), form);
}

void Answer(RpcContext& context, CallPtr call, PlannedRpc planned) {
  const StatusOr<bool> cumulative =
      WantsCumulative(call->Metadata(kStreamForm), "metadata", context.api.grpc_cumulative);
  if (!cumulative.ok()) return Refuse(*call, context.api, cumulative.status());
  NativeMessages messages(planned.plan, planned.form, *cumulative);
  StreamRpc<NativeMessages>::Start(context, std::move(call), *planned.model,
                                   std::move(planned.plan), std::move(messages));
}

}  // namespace

void AddGenerateRpcs(RpcContext& context) {
  AddPlanned(context, "/sglang.runtime.v1.SglangService/TextGenerate", PrepareText, Answer);
  AddPlanned(context, "/sglang.runtime.v1.SglangService/Generate", PrepareIds, Answer);
}

}  // namespace portico::api::rpc
