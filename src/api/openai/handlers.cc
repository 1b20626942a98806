#include "api/openai/handlers.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "api/common/error_body.h"
#include "api/openai/audio/chat/chat_audio_call.h"
#include "api/openai/audio/chat/decode_chat_audio.h"
#include "api/openai/chat/chat_encoder.h"
#include "api/openai/chat/decode_chat.h"
#include "api/openai/completion/completion_encoder.h"
#include "api/openai/completion/decode_completion.h"
#include "api/openai/models.h"
#include "api/openai/text_call.h"
#include "api/planning.h"
#include "base/clock.h"
#include "base/log.h"
#include "pipeline/coordinator/pipeline.h"
#include "service/model_task.h"
#include "service/plan/plan.h"
#include "service/plan/request_cost.h"

namespace portico::api::openai {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

constexpr std::string_view kModelsPath = "/v1/models/";
void LogUnknown(const std::vector<std::string>& fields) {
  for (const std::string& field : fields) LogDebug("ignored an unknown field: {}", field);
}

// A planned request and the model that answers it.
struct PlannedText {
  const ServingModel* model = nullptr;
  GenerationPlan plan;
};

// What the two APIs that answer with text have in common. `Form` is ChatForm or CompletionForm.
template <typename Form>
struct TextApi {
  using Planned = PlannedText;
  static constexpr bool kListsTexts = Form::kListsTexts;

  static StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser& parser,
                                   const PlanContext& context) {
    const TimePoint arrival = Clock::now();
    std::vector<std::string> unknown;
    if (body.size() > kLongBody) {
      const OptionsCheck check = [&context](const GenerationOptions& options,
                                            size_t prompts) -> Status {
        PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                                 FindAble(*context.api.models, options.model, CheckGenerates));
        const EngineInfo& engine = model->engine->info();
        AnswerCost answer = AnswerCostOf(options, engine);
        answer.logprobs_field = Form::kLogprobsField;
        return CheckAnswers(answer, engine, Form::kPromptField, prompts, model->max_request_cost);
      };
      PORTICO_RETURN_IF_ERROR(Form::CheckLong(body, parser, check));
    }
    PORTICO_ASSIGN_OR_RETURN(auto request, Form::Decode(body, parser, &unknown));
    LogUnknown(unknown);
    PORTICO_ASSIGN_OR_RETURN(const ServingModel* model,
                             FindAble(*context.api.models, request.options.model, CheckGenerates));
    StatusOr<GenerationPlan> plan = Form::Plan(*model, std::move(request), context.gate);
    if (!plan.ok()) return plan.status();
    Planned planned{model, *std::move(plan)};
    PORTICO_RETURN_IF_ERROR(ReadMedia(context.api, &planned));
    planned.plan.arrival = arrival;
    return planned;
  }

  static void Answer(ExchangePtr exchange, ShardContext& shard, Planned&& planned) {
    const ServingModel& model = *planned.model;
    GenerationPlan& plan = planned.plan;
    plan.options.reasoning_field = shard.api.reasoning_field;
    AnswerHead head = MakeAnswerHead(Form::kIdPrefix, plan.options.rid, model.id);
    if (shard.api.log_requests) plan.log_name = head.id;
    if (plan.options.stream) {
      auto call = std::make_unique<StreamCall<typename Form::Encoder>>(
          std::move(exchange), shard, typename Form::Encoder(head, plan.options));
      return Launch(std::move(call), model, std::move(plan), shard);
    }
    auto call = std::make_unique<WholeCall<typename Form::Answer>>(
        std::move(exchange), shard, typename Form::Answer(std::move(head), plan.options));
    Launch(std::move(call), model, std::move(plan), shard);
  }
};

struct ChatForm {
  static constexpr bool kListsTexts = false;
  using Answer = ChatAnswer;
  using Encoder = ChatStreamEncoder;
  static constexpr std::string_view kIdPrefix = "chatcmpl-";
  static constexpr std::string_view kPromptField = "messages";
  static constexpr std::string_view kLogprobsField = "top_logprobs";
  static constexpr auto CheckLong = CheckLongChat;
  static constexpr auto Decode = DecodeChatWithMedia;
  static constexpr auto Plan = PlanChat;
};

struct CompletionForm {
  static constexpr bool kListsTexts = true;
  using Answer = CompletionAnswer;
  using Encoder = CompletionStreamEncoder;
  static constexpr std::string_view kIdPrefix = "cmpl-";
  static constexpr std::string_view kPromptField = "prompt";
  static constexpr std::string_view kLogprobsField = "logprobs";
  static constexpr auto CheckLong = CheckLongCompletion;
  static constexpr auto Decode = DecodeCompletion;
  static constexpr auto Plan = PlanCompletion;
};

// Chats that are heard or answered aloud go to the pipeline.
struct AudioChatApi {
  struct Planned {
    AudioChat chat;
  };

  static StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser& parser,
                                   const PlanContext& context) {
    Planned planned;
    PORTICO_ASSIGN_OR_RETURN(planned.chat, DecodeAudioChat(body, parser, *context.api.pipeline,
                                                           !context.api.models->models().empty()));
    return planned;
  }

  static void Answer(ExchangePtr exchange, ShardContext& shard, Planned planned) {
    if (planned.chat.request.chat != nullptr) {
      return AnswerAudioChat(std::move(exchange), shard, std::move(planned.chat));
    }
    exchange->request.body = std::move(planned.chat.text_body);
    HandlePlanned<TextApi<ChatForm>>(std::move(exchange), shard);
  }
};

void HandleChat(ExchangePtr exchange, ShardContext& shard) {
  const bool pipeline = shard.api.models->ready() && shard.api.pipeline != nullptr;
  if (pipeline && !shard.api.pipeline->Serves(pipeline::Task::kChat) &&
      shard.api.models->models().empty()) {
    return ReplyError(*exchange, shard.api, shard.api.pipeline->CheckServes(pipeline::Task::kChat));
  }
  if (pipeline && (shard.api.pipeline->thinks() || MayHaveAudio(exchange->request.body))) {
    return HandlePlanned<AudioChatApi>(std::move(exchange), shard);
  }
  HandlePlanned<TextApi<ChatForm>>(std::move(exchange), shard);
}

void HandleModels(ExchangePtr exchange, ShardContext& shard) {
  if (!shard.api.models->ready()) {
    return ReplyError(*exchange, shard.api, shard.api.models->Find("").status());
  }
  // A pipeline without a served model is a model itself.
  const pipeline::Pipeline* pipeline = shard.api.pipeline;
  const bool alone = pipeline != nullptr && shard.api.models->models().empty();
  ReplyJson(*exchange, shard.api, 200,
            alone ? ModelListBody({}, pipeline->config().name, pipeline->created())
                  : ModelListBody(shard.api.models->models()));
}

void HandleModel(ExchangePtr exchange, ShardContext& shard) {
  // "org/name" comes as it is or as "org%2Fname".
  const std::string name =
      absl::StrReplaceAll(exchange->request.path.substr(kModelsPath.size()), {{"%2F", "/"}});
  auto model = shard.api.models->Find(name);
  if (!model.ok()) return ReplyError(*exchange, shard.api, model.status());
  ReplyJson(*exchange, shard.api, 200, ModelBody(**model));
}

}  // namespace

void AddOpenAiRoutes(RouteTable& routes) {
  routes.Add("POST", "/v1/chat/completions", Access::kKey, HandleChat);
  routes.Add("POST", "/v1/completions", Access::kKey, HandlePlanned<TextApi<CompletionForm>>);
  routes.Add("GET", "/v1/models", Access::kKey, HandleModels);
  routes.Add("GET", "/v1/models/*", Access::kKey, HandleModel);
}

}  // namespace portico::api::openai
