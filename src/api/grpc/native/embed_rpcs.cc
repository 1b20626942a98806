#include "api/grpc/native/embed_rpcs.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "api/grpc/field_checks.h"
#include "api/grpc/rpc_answer.h"
#include "api/reply.h"
#include "api/sglang/pooling_meta.h"
#include "service/model_task.h"
#include "service/pooling/pooled_values.h"
#include "service/pooling/pooling_plan.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;
using Ids = google::protobuf::RepeatedField<int32_t>;

// All three answers have the same fields.
std::string Serialize(const std::optional<VectorForm>& form, std::string_view weight_version,
                      PoolingResult result) {
  PoolingOutput& output = result.outputs.front();
  if (form) form->Apply(&output.values);
  pb::EmbedResponse response;
  response.mutable_embedding()->Add(output.values.begin(), output.values.end());
  const sglang::PoolingMeta meta{result.rids.front(), output.prompt_tokens, Seconds(result.took),
                                 weight_version};
  for (auto& [key, value] : sglang::PoolingMetaEntries(meta)) {
    (*response.mutable_meta_info())[std::string(key)] = std::move(value);
  }
  return response.SerializeAsString();
}

StatusOr<EmbeddingRequest> RequestOf(const std::string* text, const Ids* ids,
                                     const std::string& rid) {
  const bool has_text = text != nullptr && !text->empty();
  const bool has_ids = ids != nullptr && !ids->empty();
  const std::string_view field = text != nullptr ? "text" : "input_ids";
  if (!has_text && !has_ids) {
    return InvalidArgument(field, text != nullptr && ids != nullptr
                                      ? "text or input_ids is required"
                                      : fmt::format("{} must not be empty", field));
  }
  if (has_text && has_ids) return InvalidArgument(field, "give either text or input_ids, not both");
  PORTICO_RETURN_IF_ERROR(CheckRid("rid", rid));
  if (has_ids) return RequestOfIds(*ids, rid);
  EmbeddingRequest request;
  request.input_field = "text";
  request.inputs.emplace_back().text = *text;
  if (!rid.empty()) request.rid.values.push_back(rid);
  return request;
}

StatusOr<PlannedPooling> Plan(const RpcContext& context, ModelTask task,
                              StatusOr<EmbeddingRequest> request) {
  if (!request.ok()) return request.status();
  PlannedPooling planned;
  PORTICO_ASSIGN_OR_RETURN(planned.model,
                           FindAble(*context.api.models, request->model,
                                    task == ModelTask::kEmbed ? CheckEmbeds : CheckClassifies));
  const EngineInfo& engine = planned.model->engine->info();
  std::optional<VectorForm> form;
  if (task == ModelTask::kEmbed) {
    PORTICO_ASSIGN_OR_RETURN(form, VectorForm::Of(engine, std::nullopt, std::nullopt));
  }
  const PoolingPlanner planner{*planned.model, context.api.max_client_batch_size};
  PORTICO_ASSIGN_OR_RETURN(planned.plan,
                           planner.PlanNamedInputs(*std::move(request), NewRequestId));
  planned.encode = [form, version = planned.model->weight_version()](PoolingResult result) {
    return Serialize(form, version, std::move(result));
  };
  return planned;
}

StatusOr<PlannedPooling> PrepareText(const RpcContext& context, const std::string& bytes) {
  SmallArena memory;
  PORTICO_ASSIGN_OR_RETURN(const auto* request, memory.Parse<pb::TextEmbedRequest>(bytes));
  return Plan(context, ModelTask::kEmbed, RequestOf(&request->text(), nullptr, request->rid()));
}

StatusOr<PlannedPooling> PrepareIds(const RpcContext& context, const std::string& bytes) {
  SmallArena memory;
  PORTICO_ASSIGN_OR_RETURN(const auto* request, memory.Parse<pb::EmbedRequest>(bytes));
  return Plan(context, ModelTask::kEmbed,
              RequestOf(nullptr, &request->input_ids(), request->rid()));
}

StatusOr<PlannedPooling> PrepareClassify(const RpcContext& context, const std::string& bytes) {
  SmallArena memory;
  PORTICO_ASSIGN_OR_RETURN(const auto* request, memory.Parse<pb::ClassifyRequest>(bytes));
  return Plan(context, ModelTask::kClassify,
              RequestOf(&request->text(), &request->input_ids(), request->rid()));
}

}  // namespace

void AddEmbedRpcs(RpcContext& context) {
  AddPlanned(context, "/sglang.runtime.v1.SglangService/TextEmbed", PrepareText, AnswerPooled);
  AddPlanned(context, "/sglang.runtime.v1.SglangService/Embed", PrepareIds, AnswerPooled);
  AddPlanned(context, "/sglang.runtime.v1.SglangService/Classify", PrepareClassify, AnswerPooled);
}

}  // namespace portico::api::rpc
