#include "api/admin/health_generate.h"

#include <chrono>
#include <utility>

#include "api/common/delta_parts.h"
#include "api/exchange_call.h"
#include "api/model_name.h"
#include "api/reply.h"
#include "service/generation/generation.h"
#include "service/pooling/pooling_run.h"

namespace portico::api {
namespace {

// SGLang's defaults.
constexpr std::chrono::seconds kTimeout{20};
constexpr std::chrono::seconds kLook{1};
constexpr std::chrono::milliseconds kGlance{100};

// One token through the engine, or one text that it pools. As with SGLang, whatever comes out of the engine meanwhile
// shows that it lives: the steps of others, before which a busy engine may not come to the probe or not even take it, and
// an abort of the probe. And as SGLang's scheduler drops a probe while it works for others, an engine that works gets
// none, unless a second passes without a step.
class HealthCall final : public ExchangeCall, public TextSink, private PoolingRunSink {
 public:
  HealthCall(std::unique_ptr<net::Exchange> exchange, ShardContext& shard,
             const ServingModel& model)
      : ExchangeCall(std::move(exchange), shard),
        model_(model),
        engine_(*model.engine),
        began_(Clock::now()) {
    const EngineLoad load = engine_.load();
    steps_ = load.steps;
    works_ = load.running > 0;
  }

  Status Start() {
    if (!works_) PORTICO_RETURN_IF_ERROR(Probe());
    Watch();
    return OkStatus();
  }

  void Abort() override {
    if (works_) return AnswerAborted();
    if (generation_) generation_->Abort();
    if (run_) run_->Abort();
  }
  void OnPrompt(PromptEcho) override {}
  void OnDelta(TextDelta&& delta) override {
    if (delta.finish == FinishReason::kError) Answer(ErrorOf(delta));
    if (delta.finish == FinishReason::kAbort) AnswerAborted();
  }
  void OnEnd(const TokenUsage&) override { Answer(OkStatus()); }

 private:
  Status Probe() {
    works_ = false;
    const bool generates = engine_.info().task == ModelTask::kGenerate;
    Status status = generates ? Generate(model_) : Pool(model_);
    return status.code() == StatusCode::kResourceExhausted ? OkStatus() : status;
  }

  static std::shared_ptr<const std::vector<TokenId>> OneToken() {
    return std::make_shared<const std::vector<TokenId>>(1, TokenId{0});
  }

  Status Generate(const ServingModel& model) {
    GenerationPlan plan;
    plan.options.max_tokens = 1;
    auto sampling = std::make_shared<SamplingParams>();
    sampling->temperature = 0;
    sampling->ignore_eos = true;
    plan.sampling = std::move(sampling);
    GenerationPlan::Prompt prompt;
    prompt.ids = OneToken();
    prompt.max_new_tokens = 1;
    plan.prompts.push_back(std::move(prompt));
    PORTICO_ASSIGN_OR_RETURN(generation_, Generation::Start(model, shard_.hub, *shard_.api.metrics,
                                                            std::move(plan), this));
    return OkStatus();
  }

  Status Pool(const ServingModel& model) {
    PoolingPlan plan;
    plan.texts.resize(1);
    plan.texts[0].tokens = OneToken();
    PORTICO_ASSIGN_OR_RETURN(run_, PoolingRun::Start(model, shard_.pooling_hub, *shard_.api.metrics,
                                                     std::move(plan), this));
    return OkStatus();
  }

  void OnPooled(StatusOr<PoolingResult> result) override {
    if (result.status().code() == StatusCode::kAborted) return AnswerAborted();
    Answer(result.status());
  }

  void Watch() {
    timer_ = shard_.shard.After(works_ ? Duration(kGlance) : Duration(kLook), [this] { Look(); });
  }

  void Look() {
    const EngineLoad load = engine_.load();
    if (!load.healthy) return Answer(Error(StatusCode::kUnavailable, "the engine failed"));
    if (load.steps != steps_) return Answer(OkStatus());
    const TimePoint now = Clock::now();
    if (works_ && (load.running == 0 || now >= began_ + kLook)) {
      if (const Status status = Probe(); !status.ok()) return Answer(status);
    }
    if (now < began_ + kTimeout) return Watch();
    Answer(Error(StatusCode::kUnavailable, "the engine did not answer within 20 seconds"));
  }

  void AnswerAborted() {
    Answer(shard_.api.draining ? Error(StatusCode::kUnavailable, "the server is draining")
                               : OkStatus());
  }

  void Answer(const Status& status) {
    if (answered_) return;
    answered_ = true;
    if (status.ok()) {
      ReplyText(*exchange_, shard_.api, 200, "ok\n");
    } else {
      ReplyError(*exchange_, shard_.api,
                 Error(StatusCode::kUnavailable, std::string(MessageOf(status))));
    }
    Leave();
  }

  const ServingModel& model_;
  Engine& engine_;
  const TimePoint began_;
  uint64_t steps_ = 0;  // the engine's at that time
  bool works_ = false;  // for others, and gets no probe yet
  std::unique_ptr<Generation> generation_;
  std::unique_ptr<PoolingRun> run_;
  std::unique_ptr<net::Shard::Timer> timer_;
  bool answered_ = false;
};

// The model that the query names, or else the first that lives.
StatusOr<const ServingModel*> Probed(const net::HttpRequest& request, const ModelRegistry& models) {
  PORTICO_ASSIGN_OR_RETURN(const std::string name, ModelInQuery(request.query));
  PORTICO_ASSIGN_OR_RETURN(const ServingModel* found, models.Find(name));
  if (!name.empty()) return found;
  for (const ServingModel* model : models.models()) {
    if (model->engine->load().healthy) return model;
  }
  return found;
}

}  // namespace

void HandleHealthGenerate(std::unique_ptr<net::Exchange> exchange, ShardContext& shard) {
  StatusOr<const ServingModel*> model = Probed(exchange->request, *shard.api.models);
  if (!model.ok()) return ReplyError(*exchange, shard.api, model.status());
  // Nothing comes out of a paused engine, which is no illness.
  const EngineLoad load = (*model)->engine->load();
  if (load.paused && load.healthy) return ReplyText(*exchange, shard.api, 200, "paused\n");
  auto call = std::make_unique<HealthCall>(std::move(exchange), shard, **model);
  Status status = call->Start();
  if (!status.ok()) return ReplyError(*call->TakeExchange(), shard.api, status);
  shard.calls.Add(std::move(call));
}

}  // namespace portico::api
