#include "api/openai/embedding/rerank_handlers.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/openai/embedding/decode_embedding.h"
#include "api/openai/embedding/embedding_bodies.h"
#include "api/openai/embedding/label_call.h"
#include "api/planning.h"
#include "api/pooling_call.h"
#include "service/model_task.h"
#include "service/pooling/pooling_plan.h"

namespace portico::api::openai {
namespace {

using EncodeRanks = absl::AnyInvocable<std::string(PoolingResult)>;

template <bool kCohere>
EncodeRanks EncoderOf(RerankRequest request, const ServingModel& model) {
  RerankForm form;
  form.top_n = request.top_n;
  const EngineInfo& engine = model.engine->info();
  if (engine.task == ModelTask::kClassify) form.labels = *RelevanceLabels::Among(engine.labels);
  // SGLang shows what a classifier says, but where it says "yes" or "no" the probability of "yes"; Cohere a relevance
  // from 0 to 1.
  form.sigmoid = request.activation.value_or(kCohere || model.judge || form.labels.no);
  if (request.return_documents) form.documents = std::move(request.documents);
  return [head = MakeAnswerHead("rerank-", request.rid, model.id), version = model.weight_version(),
          form = std::move(form)](PoolingResult result) {
    return kCohere ? CohereRerankBody(head, form, std::move(result))
                   : RerankBody(head.id, version, form, std::move(result));
  };
}

// What a judge says of documents, as a classifier would.
PoolingResult ResultOf(const ScoreBoard& board, const std::vector<int32_t>& sizes,
                       TimePoint arrival) {
  PoolingResult result;
  const std::vector<float> odds = LogOdds(board.scores());
  for (size_t i = 0; i < odds.size(); ++i) {
    PoolingOutput& output = result.outputs.emplace_back();
    output.values = {odds[i]};
    output.prompt_tokens = sizes[i];
    result.prompt_tokens += sizes[i];
  }
  result.took = Clock::now() - arrival;
  return result;
}

template <bool kCohere>
struct RerankApi {
  static constexpr bool kListsTexts = true;

  struct Planned {
    const ServingModel* model = nullptr;
    PoolingPlan pooling;   // of a classifier
    GenerationPlan judge;  // of a model that generates
    EncodeRanks encode;
  };

  static StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser& parser,
                                   const PlanContext& context) {
    Planned planned;
    PORTICO_ASSIGN_OR_RETURN(RerankRequest request, DecodeRerank(body, parser));
    PORTICO_ASSIGN_OR_RETURN(planned.model,
                             FindAble(*context.api.models, request.model, CheckRanks));
    const PoolingPlanner planner{*planned.model, context.api.max_client_batch_size, context.helpers,
                                 context.gate};
    if (planned.model->engine->info().task == ModelTask::kGenerate) {
      PORTICO_RETURN_IF_ERROR(planner.CheckCount(request.documents.size(), "documents"));
      PORTICO_ASSIGN_OR_RETURN(planned.judge,
                               PlanJudgements(*planned.model, request, context.gate));
    } else {
      PORTICO_ASSIGN_OR_RETURN(planned.pooling, planner.PlanRerank(request));
    }
    planned.encode = EncoderOf<kCohere>(std::move(request), *planned.model);
    return planned;
  }

  static void Answer(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
                     Planned planned) {
    if (planned.judge.prompts.empty()) {
      return PoolingCall<JsonAnswer>::Start(
          std::move(exchange), shard,
          {planned.model, std::move(planned.pooling), std::move(planned.encode)});
    }
    std::vector<int32_t> sizes;
    for (const GenerationPlan::Prompt& prompt : planned.judge.prompts) {
      sizes.push_back(static_cast<int32_t>(prompt.ids->size()));
    }
    auto encode = [ranks = std::move(planned.encode), sizes = std::move(sizes),
                   arrival = planned.judge.arrival](const ScoreBoard& board, TokenUsage) mutable {
      return ranks(ResultOf(board, sizes, arrival));
    };
    auto call = std::make_unique<LabelCall>(std::move(exchange), shard, planned.judge,
                                            /*softmax=*/true, std::move(encode));
    Launch(std::move(call), *planned.model, std::move(planned.judge), shard);
  }
};

}  // namespace

void AddRerankRoutes(RouteTable& routes) {
  for (const char* method : {"POST", "PUT"}) {
    routes.Add(method, "/v1/rerank", Access::kKey, HandlePlanned<RerankApi<false>>);
  }
  for (const char* path : {"/rerank", "/v2/rerank"}) {
    routes.Add("POST", path, Access::kKey, HandlePlanned<RerankApi<true>>);
  }
}

}  // namespace portico::api::openai
