#include "api/grpc/scheduler/scheduler_embed.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "api/grpc/field_checks.h"
#include "api/grpc/rpc_answer.h"
#include "service/model_task.h"
#include "service/pooling/pooled_values.h"
#include "service/pooling/pooling_plan.h"
#include "sglang/grpc/scheduler/sglang_scheduler.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::grpc::scheduler;

std::string Serialize(const std::optional<VectorForm>& form, PoolingResult result) {
  PoolingOutput& output = result.outputs.front();
  if (form) form->Apply(&output.values);
  pb::EmbedResponse response;
  response.set_embedding_dim(static_cast<uint32_t>(output.values.size()));
  response.mutable_embedding()->Add(output.values.begin(), output.values.end());
  response.set_prompt_tokens(static_cast<uint32_t>(output.prompt_tokens));
  return response.SerializeAsString();
}

StatusOr<EmbeddingRequest> RequestOf(const pb::EmbedRequest& from) {
  if (from.mm_inputs().ByteSizeLong() > 0) return NotSupported("mm_inputs");
  if (from.tokenized().input_ids_size() == 0) {
    return InvalidArgument("input_ids", "input_ids must not be empty");
  }
  PORTICO_RETURN_IF_ERROR(CheckRid("request_id", from.request_id()));
  PORTICO_ASSIGN_OR_RETURN(EmbeddingRequest request,
                           RequestOfIds(from.tokenized().input_ids(), from.request_id()));
  // Without presence in this proto: 0 leaves the choice to the engine.
  if (from.data_parallel_rank() > 0) request.data_parallel_rank = from.data_parallel_rank();
  if (from.token_type_ids_size() == 0) return request;
  std::vector<uint8_t>& types = request.token_types.emplace_back();
  for (int32_t type : from.token_type_ids()) {
    PORTICO_RETURN_IF_ERROR(CheckInteger("token_type_ids", type, {0, 255}));
    types.push_back(static_cast<uint8_t>(type));
  }
  return request;
}

// Vectors or logits, whichever the model gives.
Status CheckPools(const ServingModel& model) {
  return model.engine->info().task == ModelTask::kClassify ? OkStatus() : CheckEmbeds(model);
}

StatusOr<PlannedPooling> Prepare(const RpcContext& context, const std::string& bytes) {
  SmallArena memory;
  PORTICO_ASSIGN_OR_RETURN(auto* message, memory.Parse<pb::EmbedRequest>(bytes));
  PORTICO_ASSIGN_OR_RETURN(EmbeddingRequest request, RequestOf(*message));
  PlannedPooling planned;
  PORTICO_ASSIGN_OR_RETURN(planned.model, FindAble(*context.api.models, "", CheckPools));
  const EngineInfo& engine = planned.model->engine->info();
  std::optional<VectorForm> form;
  if (engine.task != ModelTask::kClassify) {
    PORTICO_ASSIGN_OR_RETURN(form, VectorForm::Of(engine, std::nullopt, std::nullopt));
  }
  const PoolingPlanner planner{*planned.model, context.api.max_client_batch_size};
  PORTICO_ASSIGN_OR_RETURN(planned.plan, planner.PlanInputs(std::move(request)));
  planned.encode = [form](PoolingResult result) { return Serialize(form, std::move(result)); };
  return planned;
}

}  // namespace

void AddSchedulerEmbed(RpcContext& context, const std::string& method) {
  AddPlanned(context, method, Prepare, AnswerPooled);
}

}  // namespace portico::api::rpc
