#include "api/openai/embedding/embedding_handlers.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/openai/embedding/decode_embedding.h"
#include "api/openai/embedding/embedding_bodies.h"
#include "api/planning.h"
#include "api/pooling_call.h"
#include "api/sglang/pooling_meta.h"
#include "service/model_task.h"
#include "service/pooling/pooling_plan.h"

namespace portico::api::openai {
namespace {

// A route: decodes the body, finds a model that can do it, plans the texts and what becomes of their results.
template <auto kDecode, auto kCheck, auto kPlan>
struct PoolingApi {
  using Planned = PlannedPooling;
  static constexpr bool kListsTexts = true;

  static StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser& parser,
                                   const PlanContext& context) {
    PORTICO_ASSIGN_OR_RETURN(auto request, kDecode(body, parser));
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                             FindAble(*context.api.models, request.model, kCheck));
    return kPlan(std::move(request), PoolingPlanner{*model, context.api.max_client_batch_size,
                                                    context.helpers, context.gate});
  }

  static void Answer(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
                     Planned planned) {
    PoolingCall<JsonAnswer>::Start(std::move(exchange), shard, std::move(planned));
  }
};

StatusOr<VectorForm> FormOf(const EmbeddingRequest& request, const ServingModel& model) {
  return VectorForm::Of(model.engine->info(), request.dimensions, request.normalize);
}

// One that is neither cut nor normalized may be sparse.
bool TakesAsItIs(const EmbeddingRequest& request) {
  return !request.dimensions && !request.normalize;
}

StatusOr<PlannedPooling> PlanVectors(EmbeddingRequest request, const PoolingPlanner& planner) {
  PORTICO_ASSIGN_OR_RETURN(const VectorForm form, FormOf(request, planner.model));
  const bool base64 = request.base64;
  const bool takes_sparse = TakesAsItIs(request);
  PORTICO_ASSIGN_OR_RETURN(PoolingPlan plan, planner.PlanInputs(std::move(request)));
  plan.takes_sparse = takes_sparse;
  auto encode = [id = planner.model.id, form, base64](PoolingResult result) {
    return EmbeddingBody(id, form, base64, std::move(result));
  };
  return PlannedPooling{&planner.model, std::move(plan), std::move(encode)};
}

StatusOr<PlannedPooling> PlanClasses(EmbeddingRequest request, const PoolingPlanner& planner) {
  const ServingModel& model = planner.model;
  const bool activation = request.activation;
  PORTICO_ASSIGN_OR_RETURN(PoolingPlan plan, planner.PlanInputs(std::move(request)));
  auto encode =
      [head = MakeAnswerHead("classify-", plan.rids.size() == 1 ? plan.rids[0] : "", model.id),
       &model, activation](PoolingResult result) {
        return ClassifyBody(head, model.engine->info(), activation, std::move(result));
      };
  return PlannedPooling{&model, std::move(plan), std::move(encode)};
}

// SGLang's form: every text has a name.
StatusOr<PlannedPooling> PlanNative(EmbeddingRequest request, std::optional<VectorForm> form,
                                    const PoolingPlanner& planner) {
  const bool is_list = request.is_list;
  const bool takes_sparse = form.has_value() && TakesAsItIs(request);
  PORTICO_ASSIGN_OR_RETURN(PoolingPlan plan,
                           planner.PlanNamedInputs(std::move(request), NewRequestId));
  plan.takes_sparse = takes_sparse;
  auto encode = [form, is_list, version = planner.model.weight_version()](PoolingResult result) {
    return sglang::PooledBody(form, is_list, version, std::move(result));
  };
  return PlannedPooling{&planner.model, std::move(plan), std::move(encode)};
}

StatusOr<PlannedPooling> PlanNativeVectors(EmbeddingRequest request,
                                           const PoolingPlanner& planner) {
  PORTICO_ASSIGN_OR_RETURN(const VectorForm form, FormOf(request, planner.model));
  return PlanNative(std::move(request), form, planner);
}

// Or vLLM's form, whose field is "input".
StatusOr<PlannedPooling> PlanNativeClasses(EmbeddingRequest request,
                                           const PoolingPlanner& planner) {
  if (request.input_field == "input") return PlanClasses(std::move(request), planner);
  return PlanNative(std::move(request), std::nullopt, planner);
}

using EmbeddingsApi = PoolingApi<DecodeEmbedding, CheckEmbeds, PlanVectors>;
using ClassifyApi = PoolingApi<DecodeClassify, CheckClassifies, PlanClasses>;
using EncodeApi = PoolingApi<DecodeEncode, CheckEmbeds, PlanNativeVectors>;
using NativeClassifyApi = PoolingApi<DecodeNativeClassify, CheckClassifies, PlanNativeClasses>;

}  // namespace

void AddEmbeddingRoutes(RouteTable& routes) {
  routes.Add("POST", "/v1/embeddings", Access::kKey, HandlePlanned<EmbeddingsApi>);
  routes.Add("POST", "/v1/classify", Access::kKey, HandlePlanned<ClassifyApi>);
  for (const char* method : {"POST", "PUT"}) {
    routes.Add(method, "/encode", Access::kKey, HandlePlanned<EncodeApi>);
    routes.Add(method, "/classify", Access::kKey, HandlePlanned<NativeClassifyApi>);
  }
}

}  // namespace portico::api::openai
