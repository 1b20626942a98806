#include "service/engine_stage.h"

#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include "pipeline/config/config.h"
#include "service/generation/generation.h"
#include "service/model_task.h"
#include "service/plain_chat.h"
#include "service/plan/plan.h"
#include "service/stage_sampling.h"
#include "text/json.h"

namespace portico {
namespace {

using pipeline::FinishPart;
using pipeline::HeardPart;
using pipeline::Part;
using pipeline::StageOutput;
using pipeline::TextPart;
using pipeline::ToolCallPart;

std::string_view ReasonName(FinishReason reason, bool in_calls) {
  if (reason == FinishReason::kLength) return "length";
  return in_calls ? "tool_calls" : "stop";
}

// The generation of one request: lives on a shard, and sends what it says from there.
class Thought final : public TextSink, public std::enable_shared_from_this<Thought> {
 public:
  Thought(StreamHub& hub, std::shared_ptr<StageOutput> output)
      : hub_(hub), output_(std::move(output)) {}

  StreamHub& hub() { return hub_; }

  // On the shard.
  void Start(const ServingModel& model, ServiceMetrics& metrics, GenerationPlan plan) {
    if (dropped_) return;
    auto generation = Generation::Start(model, hub_, metrics, std::move(plan), this);
    if (!generation.ok()) {
      output_->End(generation.status());
      return;
    }
    generation_ = *std::move(generation);
  }
  // On the shard, not from within a delta.
  void Drop() {
    dropped_ = true;
    generation_.reset();
  }

  void OnPrompt(PromptEcho) override {}

  void OnDelta(TextDelta&& delta) override {
    if (!delta.error.ok()) failure_ = delta.error;
    if (delta.finish != FinishReason::kNone) reason_ = delta.finish;
    in_calls_ = in_calls_ || delta.ends_in_calls;
    for (ToolCallPiece& piece : delta.calls) {
      output_->Emit(ToolCallPart{piece.index, std::move(piece.id), std::move(piece.name),
                                 std::move(piece.arguments)});
    }
    if (!delta.text.empty() && !output_->Emit(TextPart{std::move(delta.text)}))
      generation_->Abort();
  }

  void OnEnd(const TokenUsage& total) override {
    if (failure_.ok() && reason_ == FinishReason::kError) {
      failure_ = Error(StatusCode::kInternal, "the engine failed");
    }
    if (failure_.ok()) {
      output_->Emit(FinishPart{std::string(ReasonName(reason_, in_calls_)), total.prompt_tokens,
                               total.completion_tokens});
    }
    output_->End(std::move(failure_));
    hub_.net_shard().Post([self = shared_from_this()] { self->Drop(); });
  }

 private:
  StreamHub& hub_;
  const std::shared_ptr<StageOutput> output_;
  std::unique_ptr<Generation> generation_;
  FinishReason reason_ = FinishReason::kNone;
  bool in_calls_ = false;
  Status failure_;
  bool dropped_ = false;
};

class EngineRun final : public pipeline::StageRun {
 public:
  EngineRun(std::shared_ptr<const pipeline::Request> request, std::shared_ptr<StageOutput> output,
            const EngineStageContext& context, std::string stage, std::string model, StreamHub& hub)
      : request_(std::move(request)),
        output_(std::move(output)),
        context_(context),
        stage_(std::move(stage)),
        model_(std::move(model)),
        thought_(std::make_shared<Thought>(hub, output_)) {}
  ~EngineRun() override { Abort(); }

  Status OnPart(Part part, std::string_view) override {
    const auto* heard = std::get_if<HeardPart>(&part);
    return heard == nullptr ? OkStatus() : AddHeard(*heard, *request_, &heard_);
  }

  void OnInputEnd() override {
    if (Status status = Think(); !status.ok()) output_->End(std::move(status));
  }

  void Abort() override {
    if (aborted_.exchange(true)) return;
    StreamHub& hub = thought_->hub();
    hub.net_shard().Post([thought = thought_] { thought->Drop(); });
  }

 private:
  Status Think() {
    ChatRequest chat = *request_->chat;
    PORTICO_RETURN_IF_ERROR(PutHeard(heard_, *request_, &chat.messages));
    SetStageSampling(*request_, stage_, &chat.options);
    const std::string& name = model_.empty() ? chat.options.model : model_;
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                             FindAble(*context_.models, name, CheckGenerates));
    PORTICO_ASSIGN_OR_RETURN(GenerationPlan plan, PlanChat(*model, std::move(chat)));
    auto shared = std::make_shared<GenerationPlan>(std::move(plan));
    StreamHub& hub = thought_->hub();
    hub.net_shard().Post([thought = thought_, model, shared, metrics = context_.metrics] {
      thought->Start(*model, *metrics, std::move(*shared));
    });
    return OkStatus();
  }

  const std::shared_ptr<const pipeline::Request> request_;
  const std::shared_ptr<StageOutput> output_;
  const EngineStageContext& context_;
  const std::string stage_;
  const std::string model_;
  const std::shared_ptr<Thought> thought_;
  std::map<std::string, std::string> heard_;  // by mark
  std::atomic<bool> aborted_{false};
};

class EngineStage final : public pipeline::Stage {
 public:
  EngineStage(EngineStageContext context, std::string stage, std::string model)
      : context_(std::move(context)), stage_(std::move(stage)), model_(std::move(model)) {}

  bool samples() const override { return true; }
  bool calls_tools() const override { return true; }
  bool Answers(pipeline::Task task) const override { return task == pipeline::Task::kChat; }

  Status Check(const pipeline::Request& request) const override {
    PORTICO_RETURN_IF_ERROR(CheckIsChat(request));
    if (request.chat->options.n != 1) {
      return InvalidArgument("n", "n must be 1 in chats with audio");
    }
    PORTICO_RETURN_IF_ERROR(CheckSpokenChat(request.chat->options));
    const std::string& name = model_.empty() ? request.chat->options.model : model_;
    return FindAble(*context_.models, name, CheckGenerates).status();
  }

  std::unique_ptr<pipeline::StageRun> Start(std::shared_ptr<const pipeline::Request> request,
                                            std::shared_ptr<StageOutput> output) override {
    StreamHub& hub = *context_.hubs[turn_.fetch_add(1) % context_.hubs.size()];
    return std::make_unique<EngineRun>(std::move(request), std::move(output), context_, stage_,
                                       model_, hub);
  }

 private:
  const EngineStageContext context_;
  const std::string stage_;
  const std::string model_;
  std::atomic<size_t> turn_{0};
};

}  // namespace

pipeline::StageFactory EngineStageFactory(EngineStageContext context) {
  return [context = std::move(context)](
             const pipeline::StageConfig& config) -> StatusOr<std::unique_ptr<pipeline::Stage>> {
    for (const auto& [key, value] : config.factory.as_object()) {
      if (key == "model" && value.is_string()) continue;
      return Error(StatusCode::kInvalidArgument, "factory takes `model`, the name of a model");
    }
    return std::unique_ptr<pipeline::Stage>(
        std::make_unique<EngineStage>(context, config.name, config.factory.GetString("model")));
  };
}

}  // namespace portico
