#include "api/grpc/embed_rpcs.h"

#include <fmt/format.h>

#include "api/grpc/field_checks.h"
#include "service/embedding_gate.h"
#include "sglang/runtime/v1/sglang.pb.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;
using Ids = google::protobuf::RepeatedField<int32_t>;

Status RefuseEmbedding(const RpcContext& context, EmbeddingTask task, const std::string* text,
                       const Ids* ids) {
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, context.api.models->Find(""));
  if (ids != nullptr) {
    PORTICO_RETURN_IF_ERROR(
        CheckTokenIds("input_ids", SpanOf(*ids), model->engine->info().vocab_size));
  }
  const bool has_text = text != nullptr && !text->empty();
  const bool has_ids = ids != nullptr && !ids->empty();
  const std::string_view field = text != nullptr ? "text" : "input_ids";
  if (!has_text && !has_ids) {
    return InvalidArgument(field, text != nullptr && ids != nullptr
                                      ? "text or input_ids is required"
                                      : fmt::format("{} must not be empty", field));
  }
  if (has_text && has_ids) return InvalidArgument(field, "give either text or input_ids, not both");
  return CheckEmbeds(*model, task);
}

Status TextEmbed(RpcContext& context, ShardContext&, const pb::TextEmbedRequest& request,
                 pb::TextEmbedResponse*) {
  return RefuseEmbedding(context, EmbeddingTask::kEmbed, &request.text(), nullptr);
}

Status Embed(RpcContext& context, ShardContext&, const pb::EmbedRequest& request,
             pb::EmbedResponse*) {
  return RefuseEmbedding(context, EmbeddingTask::kEmbed, nullptr, &request.input_ids());
}

Status Classify(RpcContext& context, ShardContext&, const pb::ClassifyRequest& request,
                pb::ClassifyResponse*) {
  return RefuseEmbedding(context, EmbeddingTask::kClassify, &request.text(), &request.input_ids());
}

}  // namespace

void AddEmbedRpcs(RpcContext& context) {
  AddUnary(context, "/sglang.runtime.v1.SglangService/TextEmbed", TextEmbed);
  AddUnary(context, "/sglang.runtime.v1.SglangService/Embed", Embed);
  AddUnary(context, "/sglang.runtime.v1.SglangService/Classify", Classify);
}

}  // namespace portico::api::rpc
