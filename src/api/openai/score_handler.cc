#include "api/openai/score_handler.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/openai/answer.h"
#include "api/openai/decode_score.h"
#include "api/planning.h"
#include "api/reply.h"
#include "base/log.h"
#include "service/score.h"
#include "text/json_writer.h"

namespace portico::api::openai {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

std::string ScoreBody(const std::vector<std::vector<double>>& scores, const std::string& model,
                      const TokenUsage& usage) {
  std::string body;
  JsonWriter w(&body);
  w.BeginObject().Key("scores").BeginArray();
  for (const std::vector<double>& row : scores) {
    w.BeginArray();
    for (double score : row) w.Double(score);
    w.EndArray();
  }
  w.EndArray();
  w.Key("model").String(model);
  w.Key("usage");
  std::string counts;
  AppendUsage(usage, &counts);
  w.Raw(counts);
  w.Key("object").String("scoring").EndObject();
  return body;
}

class ScoreCall final : public Call, public TextSink {
 public:
  ScoreCall(ExchangePtr exchange, ShardContext& shard, size_t items, bool softmax)
      : exchange_(std::move(exchange)), shard_(shard), board_(items, softmax) {
    exchange_->set_on_closed([this] { shard_.calls.Remove(this); });
  }

  // On failure nothing runs, and the caller answers with TakeExchange().
  Status Start(const ServingModel& model, GenerationPlan plan) {
    model_ = model.id;
    rid = plan.options.rid;
    PORTICO_ASSIGN_OR_RETURN(plan.rid_lease, shard_.api.rids.Take(rid));
    PORTICO_ASSIGN_OR_RETURN(generation_, Generation::Start(model, shard_.hub, *shard_.api.metrics,
                                                            std::move(plan), this));
    return OkStatus();
  }

  ExchangePtr TakeExchange() {
    exchange_->set_on_closed(nullptr);
    return std::move(exchange_);
  }

  void Abort() override { generation_->Abort(); }

  void OnPrompt(PromptEcho) override {}
  void OnDelta(TextDelta&& delta) override { board_.OnDelta(delta); }
  void OnEnd(const TokenUsage& total) override {
    if (board_.status().ok()) {
      TokenUsage usage = total;
      usage.completion_tokens = 0;  // the one token that was drawn is nobody's
      ReplyJson(*exchange_, shard_.api, 200, ScoreBody(board_.scores(), model_, usage));
    } else {
      ReplyError(*exchange_, shard_.api, board_.status());
    }
    shard_.calls.Remove(this);
  }

 private:
  ExchangePtr exchange_;
  ShardContext& shard_;
  ScoreBoard board_;
  std::string model_;
  std::unique_ptr<Generation> generation_;
};

struct ScoreApi {
  struct Planned {
    const ServingModel* model = nullptr;
    GenerationPlan plan;
    bool softmax = false;
  };

  static StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser& parser,
                                   const ModelRegistry& models) {
    Planned planned;
    std::vector<std::string> unknown;
    PORTICO_ASSIGN_OR_RETURN(const ScoreRequest request, DecodeScore(body, parser, &unknown));
    for (const std::string& field : unknown) LogDebug("ignored a field of nobody: {}", field);
    PORTICO_ASSIGN_OR_RETURN(planned.model, models.Find(request.model));
    PORTICO_ASSIGN_OR_RETURN(planned.plan, PlanScore(*planned.model, request));
    planned.softmax = request.apply_softmax;
    return planned;
  }

  static void Answer(ExchangePtr exchange, ShardContext& shard, Planned planned) {
    auto call = std::make_unique<ScoreCall>(std::move(exchange), shard, planned.plan.prompts.size(),
                                            planned.softmax);
    const Status status = call->Start(*planned.model, std::move(planned.plan));
    if (!status.ok()) {
      ExchangePtr refused = call->TakeExchange();
      return ReplyError(*refused, shard.api, status);
    }
    shard.calls.Add(std::move(call));
  }
};

}  // namespace

void AddScoreRoute(Router& router) {
  router.Add("POST", "/v1/score", Access::kKey, HandlePlanned<ScoreApi>);
}

}  // namespace portico::api::openai
