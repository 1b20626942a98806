#include "api/openai/embedding/score_handler.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/openai/answer.h"
#include "api/openai/embedding/decode_score.h"
#include "api/openai/embedding/label_call.h"
#include "api/planning.h"
#include "api/pooling_call.h"
#include "api/reply.h"
#include "base/log.h"
#include "service/generation/score.h"
#include "service/model_task.h"
#include "service/pooling/pooled_values.h"
#include "service/pooling/pooling_plan.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

// `append(i, &out)` appends the row of item i.
template <typename Append>
std::string ScoreBody(size_t items, Append append, const std::string& model,
                      const TokenUsage& usage) {
  std::string body = "{\"scores\":[";
  for (size_t i = 0; i < items; ++i) {
    if (i > 0) body.push_back(',');
    append(i, &body);
  }
  body.append("],");
  std::string rest;
  JsonWriter w(&rest);
  w.Key("model").String(model);
  w.Key("usage");
  std::string counts;
  AppendUsage(usage, &counts);
  w.Raw(counts);
  w.Key("object").String("scoring");
  return body + rest + "}";
}

std::string ScoreBody(const ScoreBoard& board, const std::string& model, const TokenUsage& usage) {
  const auto append = [&](size_t i, std::string* out) {
    JsonWriter w(out);
    w.BeginArray();
    for (double score : board.scores()[i]) w.Double(score);
    w.EndArray();
  };
  return ScoreBody(board.scores().size(), append, model, usage);
}

// What a classifier says of every pair.
std::string ScoreBody(PoolingResult result, bool softmax, const std::string& model) {
  TokenUsage usage;
  usage.prompt_tokens = static_cast<int32_t>(result.prompt_tokens);
  const auto append = [&](size_t i, std::string* out) {
    std::vector<float>& row = result.outputs[i].values;
    if (softmax) Softmax(row);
    AppendJsonFloats(row, out);
  };
  return ScoreBody(result.outputs.size(), append, model, usage);
}

struct ScoreApi {
  static constexpr bool kListsTexts = true;

  struct Planned {
    const ServingModel* model = nullptr;
    GenerationPlan plan;
    bool softmax = false;
    size_t items = 0;
    std::optional<PlannedPooling> pooling;  // of a classifier, instead of the plan
  };

  static StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser& parser,
                                   const PlanContext& context) {
    Planned planned;
    if (body.size() > kLongBody) {
      const auto check = [&context](const ScoreRequest& asked, size_t query_ids,
                                    size_t items) -> Status {
        PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                                 FindAble(*context.api.models, asked.model, CheckScores));
        if (model->engine->info().task == ModelTask::kClassify) return OkStatus();
        return CheckScoreCost(*model, asked.label_token_ids.size(),
                              static_cast<int64_t>(query_ids * sizeof(TokenId)), items);
      };
      PORTICO_RETURN_IF_ERROR(CheckLongScore(body, parser, check));
    }
    std::vector<std::string> unknown;
    PORTICO_ASSIGN_OR_RETURN(const ScoreRequest request, DecodeScore(body, parser, &unknown));
    for (const std::string& field : unknown) LogDebug("ignored an unknown field: {}", field);
    PORTICO_ASSIGN_OR_RETURN(planned.model,
                             FindAble(*context.api.models, request.model, CheckScores));
    planned.softmax = request.apply_softmax;
    planned.items = request.items.size();
    if (planned.model->engine->info().task == ModelTask::kClassify) {
      if (planned.items == 0) return planned;
      PORTICO_ASSIGN_OR_RETURN(planned.pooling, PlanPairs(request, *planned.model, context));
      return planned;
    }
    PORTICO_ASSIGN_OR_RETURN(planned.plan, PlanScore(*planned.model, request, context.gate));
    return planned;
  }

  static StatusOr<PlannedPooling> PlanPairs(const ScoreRequest& request, const ServingModel& model,
                                            const PlanContext& context) {
    PlannedPooling planned;
    planned.model = &model;
    const PoolingPlanner planner{model, context.api.max_client_batch_size, context.helpers,
                                 context.gate};
    PORTICO_ASSIGN_OR_RETURN(planned.plan, planner.PlanScores(request));
    planned.encode = [id = model.id, softmax = request.apply_softmax](PoolingResult result) {
      return ScoreBody(std::move(result), softmax, id);
    };
    return planned;
  }

  static void Answer(ExchangePtr exchange, ShardContext& shard, Planned planned) {
    if (planned.items == 0) {
      const std::string body = ScoreBody(0, [](size_t, std::string*) {}, planned.model->id, {});
      return ReplyJson(*exchange, shard.api, 200, body);
    }
    if (planned.pooling) {
      return PoolingCall<JsonAnswer>::Start(std::move(exchange), shard,
                                            *std::move(planned.pooling));
    }
    auto encode = [id = planned.model->id](const ScoreBoard& board, TokenUsage usage) {
      usage.completion_tokens = 0;  // the one token that was drawn is nobody's
      return ScoreBody(board, id, usage);
    };
    auto call = std::make_unique<LabelCall>(std::move(exchange), shard, planned.plan,
                                            planned.softmax, std::move(encode));
    Launch(std::move(call), *planned.model, std::move(planned.plan), shard);
  }
};

}  // namespace

void AddScoreRoute(RouteTable& routes) {
  routes.Add("POST", "/v1/score", Access::kKey, HandlePlanned<ScoreApi>);
}

}  // namespace portico::api::openai
