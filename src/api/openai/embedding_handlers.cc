#include "api/openai/embedding_handlers.h"

#include <memory>

#include "api/openai/decode_embedding.h"
#include "api/reply.h"
#include "service/embedding_gate.h"
#include "service/plan.h"

namespace portico::api::openai {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

// What is wrong with the request for this model, before what the model cannot do.
Status CheckInputs(const ServingModel& model, const EmbeddingRequest& request) {
  for (const CompletionRequest::Prompt& input : request.inputs) {
    if (!input.is_ids) continue;
    PORTICO_RETURN_IF_ERROR(
        CheckIds(input.ids, model.engine->info().vocab_size, request.input_field));
  }
  return OkStatus();
}

Status CheckInputs(const ServingModel&, const RerankRequest&) { return OkStatus(); }

template <auto kDecode, EmbeddingTask kTask>
void Handle(ExchangePtr exchange, ShardContext& shard) {
  if (!TakesJson(*exchange, shard.api)) return;
  const auto refuse = [&]() -> Status {
    PORTICO_ASSIGN_OR_RETURN(const auto request, kDecode(exchange->request.body, shard.parser));
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model, shard.api.models->Find(request.model));
    PORTICO_RETURN_IF_ERROR(CheckInputs(*model, request));
    return CheckEmbeds(*model, kTask);
  };
  ReplyError(*exchange, shard.api, refuse());
}

}  // namespace

void AddEmbeddingRoutes(Router& router) {
  const auto embed = Handle<DecodeEmbedding, EmbeddingTask::kEmbed>;
  const auto classify = Handle<DecodeEmbedding, EmbeddingTask::kClassify>;
  const auto rerank = Handle<DecodeRerank, EmbeddingTask::kRerank>;
  const auto encode = Handle<DecodeEncode, EmbeddingTask::kEmbed>;
  const auto classify_native = Handle<DecodeEncode, EmbeddingTask::kClassify>;
  router.Add("POST", "/v1/embeddings", Access::kKey, embed);
  router.Add("POST", "/v1/classify", Access::kKey, classify);
  for (const char* method : {"POST", "PUT"}) {
    router.Add(method, "/v1/rerank", Access::kKey, rerank);
    router.Add(method, "/encode", Access::kKey, encode);
    router.Add(method, "/classify", Access::kKey, classify_native);
  }
}

}  // namespace portico::api::openai
