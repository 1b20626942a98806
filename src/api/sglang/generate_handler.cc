#include "api/sglang/generate_handler.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/common/delta_parts.h"
#include "api/exchange_call.h"
#include "api/long_answer.h"
#include "api/planning.h"
#include "api/reply.h"
#include "api/sglang/decode_generate.h"
#include "api/sglang/generate_answer.h"
#include "api/stream_form.h"
#include "base/log.h"
#include "service/model_task.h"
#include "service/plan/native_plan.h"

namespace portico::api {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

// A native request while it is answered: one generation a prompt.
class GenerateCall final : public ExchangeCall {
 public:
  GenerateCall(ExchangePtr exchange, ShardContext& shard, const NativePlan& plan, bool cumulative)
      : ExchangeCall(std::move(exchange), shard), answer_(plan, cumulative), stream_(plan.stream) {}

  // Submits every prompt; for Launch().
  Status Start(const ServingModel& model, NativePlan plan) {
    if (plan.prompts.size() == 1) {
      exchange_->NotePrompt(*plan.prompts.front().prompts.front().ids);
    }
    const TraceContext trace = Trace();
    for (GenerationPlan& prompt : plan.prompts) {
      prompt.trace = trace;
      auto part = std::make_unique<Part>(*this, parts_.size(), prompt.options.rid);
      PORTICO_ASSIGN_OR_RETURN(part->generation,
                               Generation::Start(model, shard_.hub, *shard_.api.metrics,
                                                 std::move(prompt), part.get(), shard_.api.pool));
      parts_.push_back(std::move(part));
    }
    running_ = parts_.size();
    if (stream_) StartEvents();
    return OkStatus();
  }

  // What has ended cannot be aborted while its bytes are put together.
  void Abort() override {
    if (done_) return;
    exchange_->NoteAbort();
    for (auto& part : parts_) part->generation->Abort();
  }

  void AbortRid(std::string_view name) override {
    if (done_) return;
    for (auto& part : parts_) {
      if (part->rid != name) continue;
      if (parts_.size() == 1) exchange_->NoteAbort();
      part->generation->Abort();
    }
  }
  void FreeRids() override {
    for (auto& part : parts_) part->generation->FreeRid();
  }

  void SendBody(std::string body) {
    ReplyJson(*exchange_, shard_.api, 200, std::move(body));
    Leave();
  }

 private:
  // One prompt.
  struct Part final : TextSink {
    Part(GenerateCall& owner, size_t at, std::string name)
        : call(owner), index(at), rid(std::move(name)) {}
    void OnPrompt(PromptEcho echo) override { call.answer_.OnPrompt(index, echo); }
    PromptEncoder LongPromptEncoder() override {
      return [this, form = call.answer_.prompt_form(index)](PromptEcho echo) -> PromptTaken {
        return [this, encoded = form(echo)]() mutable {
          call.answer_.TakePrompt(index, std::move(encoded));
        };
      };
    }
    void OnDelta(TextDelta&& delta) override { call.OnDelta(index, delta); }
    void OnEnd(const TokenUsage&) override { call.OnPartEnd(); }

    GenerateCall& call;
    const size_t index;
    const std::string rid;
    std::unique_ptr<Generation> generation;
  };

  void OnDelta(size_t prompt, TextDelta& delta) {
    if (done_) return;
    if (delta.finish == FinishReason::kError) return Fail(ErrorOf(delta));
    const size_t answer = answer_.OnDelta(prompt, delta);
    if (!stream_ || !answer_.IsDue(answer)) return;
    std::string event;
    answer_.AppendEvent(answer, &event);
    exchange_->Write(event);
  }

  void OnPartEnd() {
    if (--running_ > 0 || done_) return;
    done_ = true;
    if (stream_) {
      exchange_->Write(kDoneEvent);
      exchange_->End();
      return Leave();
    }
    if (answer_.LogprobBytes() <= kLongAnswer) return SendBody(answer_.Body());
    auto encode = [answer = std::move(answer_)]() mutable { return answer.Body(); };
    if (EncodeOnPool(*this, shard_, std::move(encode))) return;
    ReplyError(*exchange_, shard_.api, PoolIsFull());
    Leave();
  }

  // The call goes away, and with it the generations that still run.
  void Fail(const Status& error) {
    done_ = true;
    if (stream_) {
      exchange_->NoteFailure(ErrorResponse(exchange_->request, shard_.api, error));
      std::string events;
      AppendErrorEvents(error, &events);
      exchange_->Write(events);
      exchange_->End();
    } else {
      ReplyError(*exchange_, shard_.api, error);
    }
    Leave();
  }

  sglang::GenerateAnswer answer_;
  const bool stream_;
  bool done_ = false;
  size_t running_ = 0;
  std::vector<std::unique_ptr<Part>> parts_;
};

struct GenerateApi {
  static constexpr bool kListsTexts = true;
  struct Planned {
    const ServingModel* model = nullptr;
    NativePlan plan;
  };

  static StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser& parser,
                                   const PlanContext& context) {
    Planned planned;
    if (body.size() > kLongBody) {
      const auto check = [&context](const NativeGenerateRequest& asked, size_t prompts) -> Status {
        PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                                 FindAble(*context.api.models, asked.model, CheckGenerates));
        return CheckNativeCost(*model, asked, prompts);
      };
      PORTICO_RETURN_IF_ERROR(sglang::CheckLongGenerate(body, parser, check));
    }
    std::vector<std::string> unknown;
    PORTICO_ASSIGN_OR_RETURN(NativeGenerateRequest request,
                             sglang::DecodeGenerate(body, parser, &unknown));
    for (const std::string& field : unknown) LogDebug("ignored an unknown field: {}", field);
    PORTICO_ASSIGN_OR_RETURN(planned.model,
                             FindAble(*context.api.models, request.model, CheckGenerates));
    PORTICO_ASSIGN_OR_RETURN(planned.plan,
                             PlanNative(*planned.model, request, NewRequestId, context.gate));
    PORTICO_RETURN_IF_ERROR(ReadMedia(context.api, &planned));
    return planned;
  }

  static void Answer(ExchangePtr exchange, ShardContext& shard, Planned planned) {
    const StatusOr<bool> cumulative = WantsCumulative(exchange->request.Header(kStreamForm),
                                                      "header", !shard.api.incremental_streaming);
    if (!cumulative.ok()) return ReplyError(*exchange, shard.api, cumulative.status());
    auto call =
        std::make_unique<GenerateCall>(std::move(exchange), shard, planned.plan, *cumulative);
    Launch(std::move(call), *planned.model, std::move(planned.plan), shard);
  }
};

}  // namespace

void AddGenerateRoute(RouteTable& routes) {
  routes.Add("POST", "/generate", Access::kKey, HandlePlanned<GenerateApi>);
  routes.Add("PUT", "/generate", Access::kKey, HandlePlanned<GenerateApi>);
}

}  // namespace portico::api
