#include "api/openai/embedding_handlers.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/openai/decode_embedding.h"
#include "api/openai/embedding_bodies.h"
#include "api/planning.h"
#include "api/pooling_call.h"
#include "api/sglang/pooling_meta.h"
#include "service/model_task.h"
#include "service/pooling_plan.h"

namespace portico::api::openai {
namespace {

using Parser = simdjson::dom::parser;
using ExchangePtr = std::unique_ptr<net::Exchange>;

PoolingPlanner PlannerOf(const ServingModel& model, const PlanContext& context) {
  return {model, context.api.max_client_batch_size, context.helpers};
}

// What the routes below have in common.
struct PoolingApi {
  using Planned = PlannedPooling;
  static void Answer(ExchangePtr exchange, ShardContext& shard, Planned planned) {
    PoolingCall<JsonAnswer>::Start(std::move(exchange), shard, std::move(planned));
  }
};

struct EmbeddingsApi : PoolingApi {
  static StatusOr<Planned> Prepare(const std::string& body, Parser& parser,
                                   const PlanContext& context) {
    Planned planned;
    PORTICO_ASSIGN_OR_RETURN(EmbeddingRequest request, DecodeEmbedding(body, parser));
    PORTICO_ASSIGN_OR_RETURN(planned.model,
                             FindAble(*context.api.models, request.model, CheckEmbeds));
    PORTICO_ASSIGN_OR_RETURN(
        const VectorForm form,
        VectorForm::Of(planned.model->engine->info(), request.dimensions, request.normalize));
    const bool base64 = request.base64;
    PORTICO_ASSIGN_OR_RETURN(planned.plan,
                             PlannerOf(*planned.model, context).PlanInputs(std::move(request)));
    planned.encode = [id = planned.model->id, form, base64](PoolingResult result) {
      return EmbeddingBody(id, form, base64, std::move(result));
    };
    return planned;
  }
};

StatusOr<PlannedPooling> PlanClasses(EmbeddingRequest request, const ServingModel& model,
                                     const PlanContext& context) {
  PlannedPooling planned;
  planned.model = &model;
  const bool activation = request.activation;
  PORTICO_ASSIGN_OR_RETURN(planned.plan, PlannerOf(model, context).PlanInputs(std::move(request)));
  const std::vector<std::string>& rids = planned.plan.rids;
  planned.encode = [head = MakeAnswerHead("classify-", rids.size() == 1 ? rids[0] : "", model.id),
                    &model, activation](PoolingResult result) {
    return ClassifyBody(head, model.engine->info().labels, activation, std::move(result));
  };
  return planned;
}

struct ClassifyApi : PoolingApi {
  static StatusOr<Planned> Prepare(const std::string& body, Parser& parser,
                                   const PlanContext& context) {
    PORTICO_ASSIGN_OR_RETURN(EmbeddingRequest request, DecodeClassify(body, parser));
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                             FindAble(*context.api.models, request.model, CheckClassifies));
    return PlanClasses(std::move(request), *model, context);
  }
};

// SGLang's form: every text has a name.
StatusOr<PlannedPooling> PlanNative(EmbeddingRequest request, const ServingModel& model,
                                    std::optional<VectorForm> form, const PlanContext& context) {
  PlannedPooling planned;
  planned.model = &model;
  const bool is_list = request.is_list;
  PORTICO_ASSIGN_OR_RETURN(
      planned.plan, PlannerOf(model, context).PlanNamedInputs(std::move(request), NewRequestId));
  planned.encode = [form, is_list](PoolingResult result) {
    return sglang::PooledBody(form, is_list, std::move(result));
  };
  return planned;
}

struct EncodeApi : PoolingApi {
  static StatusOr<Planned> Prepare(const std::string& body, Parser& parser,
                                   const PlanContext& context) {
    PORTICO_ASSIGN_OR_RETURN(EmbeddingRequest request, DecodeEncode(body, parser));
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                             FindAble(*context.api.models, request.model, CheckEmbeds));
    PORTICO_ASSIGN_OR_RETURN(
        const VectorForm form,
        VectorForm::Of(model->engine->info(), request.dimensions, request.normalize));
    return PlanNative(std::move(request), *model, form, context);
  }
};

struct NativeClassifyApi : PoolingApi {
  static StatusOr<Planned> Prepare(const std::string& body, Parser& parser,
                                   const PlanContext& context) {
    PORTICO_ASSIGN_OR_RETURN(EmbeddingRequest request, DecodeNativeClassify(body, parser));
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                             FindAble(*context.api.models, request.model, CheckClassifies));
    if (request.input_field == "input") return PlanClasses(std::move(request), *model, context);
    return PlanNative(std::move(request), *model, std::nullopt, context);
  }
};

template <bool kCohere>
struct RerankApi : PoolingApi {
  static StatusOr<Planned> Prepare(const std::string& body, Parser& parser,
                                   const PlanContext& context) {
    Planned planned;
    PORTICO_ASSIGN_OR_RETURN(RerankRequest request, DecodeRerank(body, parser));
    PORTICO_ASSIGN_OR_RETURN(planned.model,
                             FindAble(*context.api.models, request.model, CheckRanks));
    PORTICO_ASSIGN_OR_RETURN(planned.plan, PlannerOf(*planned.model, context).PlanRerank(request));
    RerankForm form;
    form.top_n = request.top_n;
    // SGLang shows what the model says, Cohere a relevance from 0 to 1.
    form.sigmoid = request.activation.value_or(kCohere);
    if (request.return_documents) form.documents = std::move(request.documents);
    planned.encode = [head = MakeAnswerHead("rerank-", request.rid, planned.model->id),
                      form = std::move(form)](PoolingResult result) {
      return kCohere ? CohereRerankBody(head, form, std::move(result))
                     : RerankBody(head.id, form, std::move(result));
    };
    return planned;
  }
};

}  // namespace

void AddEmbeddingRoutes(Router& router) {
  router.Add("POST", "/v1/embeddings", Access::kKey, HandlePlanned<EmbeddingsApi>);
  router.Add("POST", "/v1/classify", Access::kKey, HandlePlanned<ClassifyApi>);
  for (const char* method : {"POST", "PUT"}) {
    router.Add(method, "/v1/rerank", Access::kKey, HandlePlanned<RerankApi<false>>);
    router.Add(method, "/encode", Access::kKey, HandlePlanned<EncodeApi>);
    router.Add(method, "/classify", Access::kKey, HandlePlanned<NativeClassifyApi>);
  }
  for (const char* path : {"/rerank", "/v2/rerank"}) {
    router.Add("POST", path, Access::kKey, HandlePlanned<RerankApi<true>>);
  }
}

}  // namespace portico::api::openai
