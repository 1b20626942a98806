#include "api/openai/handlers.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/openai/chat_encoder.h"
#include "api/openai/completion_encoder.h"
#include "api/openai/decode_chat.h"
#include "api/openai/decode_completion.h"
#include "api/openai/errors.h"
#include "api/openai/models.h"
#include "api/openai/text_call.h"
#include "base/log.h"
#include "service/plan.h"

namespace portico::api::openai {
namespace {

using ExchangePtr = std::unique_ptr<net::Exchange>;

constexpr std::string_view kModelsPath = "/v1/models/";
// Bodies above this are parsed, rendered and tokenized off the shard: at 100 MB/s they would hold
// every other stream of the shard up for more than half a millisecond.
constexpr size_t kLongBody = 64 << 10;

int64_t UnixSeconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

AnswerHead MakeHead(std::string_view prefix, const std::string& rid, const ServingModel& model) {
  AnswerHead head;
  head.id = rid.empty() ? std::string(prefix) + NewRequestId() : rid;
  head.created = UnixSeconds();
  head.model = model.id;
  return head;
}

void LogUnknown(const std::vector<std::string>& fields) {
  for (const std::string& field : fields) LogDebug("ignored a field of nobody: {}", field);
}

void LogRequest(const ShardContext& shard, const AnswerHead& head, const GenerationPlan& plan) {
  if (!shard.api.log_requests) return;
  size_t tokens = 0;
  for (const GenerationPlan::Prompt& prompt : plan.prompts) tokens += prompt.ids->size();
  LogInfo(
      "request {}: model {}, {} prompts, {} prompt tokens, n {}, max_tokens {}, temperature "
      "{:.2f}, "
      "stream {}",
      head.id, head.model, plan.prompts.size(), tokens, plan.options.n,
      plan.prompts.front().max_new_tokens, plan.sampling.temperature, plan.options.stream);
}

// Hands the planned request to a call of the right kind.
template <typename Call>
void Launch(std::unique_ptr<Call> call, const ServingModel& model, GenerationPlan plan,
            ShardContext& shard) {
  call->rid = plan.options.rid;
  Status status = call->Start(model, std::move(plan));
  if (!status.ok()) {
    ExchangePtr exchange = call->TakeExchange();
    return ReplyError(*exchange, shard.api, status);
  }
  shard.calls.Add(std::move(call));
}

// What differs between the two APIs that answer with text.
struct ChatApi {
  using Answer = ChatAnswer;
  using Encoder = ChatStreamEncoder;
  static constexpr std::string_view kIdPrefix = "chatcmpl-";
  static constexpr auto Decode = DecodeChat;
  static constexpr auto Plan = PlanChat;
  static Encoder MakeEncoder(const AnswerHead& head, const GenerationPlan& plan) {
    return Encoder(head, plan.options);
  }
  static Answer MakeAnswer(AnswerHead head, const GenerationPlan& plan) {
    return Answer(std::move(head), plan.options);
  }
};

struct CompletionApi {
  using Answer = CompletionAnswer;
  using Encoder = CompletionStreamEncoder;
  static constexpr std::string_view kIdPrefix = "cmpl-";
  static constexpr auto Decode = DecodeCompletion;
  static constexpr auto Plan = PlanCompletion;
  static Encoder MakeEncoder(const AnswerHead& head, const GenerationPlan& plan) {
    return Encoder(head, plan.options);
  }
  static Answer MakeAnswer(AnswerHead head, const GenerationPlan& plan) {
    return Answer(std::move(head), plan.options);
  }
};

// Everything up to the engine: pure, so that a long body can be planned off the shard.
struct Planned {
  const ServingModel* model = nullptr;
  GenerationPlan plan;
};

template <typename Api>
StatusOr<Planned> Prepare(const std::string& body, simdjson::dom::parser& parser,
                          const ModelRegistry& models) {
  Planned planned;
  TimePoint arrival = Clock::now();
  std::vector<std::string> unknown;
  PORTICO_ASSIGN_OR_RETURN(auto request, Api::Decode(body, parser, &unknown));
  LogUnknown(unknown);
  PORTICO_ASSIGN_OR_RETURN(planned.model, models.Find(request.options.model));
  PORTICO_ASSIGN_OR_RETURN(planned.plan, Api::Plan(*planned.model, request));
  planned.plan.arrival = arrival;
  return planned;
}

template <typename Api>
void Answer(ExchangePtr exchange, ShardContext& shard, StatusOr<Planned> planned) {
  if (!planned.ok()) return ReplyError(*exchange, shard.api, planned.status());
  const ServingModel& model = *planned->model;
  GenerationPlan& plan = planned->plan;
  AnswerHead head = MakeHead(Api::kIdPrefix, plan.options.rid, model);
  LogRequest(shard, head, plan);
  if (plan.options.stream) {
    auto call = std::make_unique<StreamCall<typename Api::Encoder>>(std::move(exchange), shard,
                                                                    Api::MakeEncoder(head, plan));
    return Launch(std::move(call), model, std::move(plan), shard);
  }
  auto call = std::make_unique<WholeCall<typename Api::Answer>>(
      std::move(exchange), shard, Api::MakeAnswer(std::move(head), plan));
  Launch(std::move(call), model, std::move(plan), shard);
}

// Holds the exchange while the pool plans its request. A client that leaves meanwhile takes it
// along.
class PlanningCall final : public Call {
 public:
  PlanningCall(ExchangePtr exchange, ShardContext& shard) : exchange_(std::move(exchange)) {
    exchange_->set_on_closed([this, &shard] { shard.calls.Remove(this); });
  }
  // It has no rid yet, so that only an abort of everything gets here: the plan then goes on to be
  // refused by the engine, or is answered.
  void Abort() override {}
  ExchangePtr TakeExchange() {
    exchange_->set_on_closed(nullptr);
    return std::move(exchange_);
  }

 private:
  ExchangePtr exchange_;
};

// Plans on the CPU pool. False: the pool is full, and the exchange is untouched.
template <typename Api>
bool PlanOnPool(ExchangePtr& exchange, ShardContext& shard) {
  auto body = std::make_shared<std::string>(std::move(exchange->request.body));
  auto pending = std::make_shared<std::atomic<uint64_t>>(0);
  CpuPool::Task task = [body, pending, &shard] {
    static thread_local simdjson::dom::parser parser;
    auto planned =
        std::make_shared<StatusOr<Planned>>(Prepare<Api>(*body, parser, *shard.api.models));
    shard.shard.Post([planned, pending, &shard] {
      Call* call = shard.calls.Find(*pending);
      if (call == nullptr) return;
      ExchangePtr owned = static_cast<PlanningCall*>(call)->TakeExchange();
      shard.calls.Remove(call);
      Answer<Api>(std::move(owned), shard, *std::move(planned));
    });
  };
  if (!shard.api.pool->Submit(std::move(task))) {
    exchange->request.body = std::move(*body);
    return false;
  }
  // The answer is posted to this very shard, so it cannot be there before the call is in the table.
  *pending = shard.calls.Add(std::make_unique<PlanningCall>(std::move(exchange), shard));
  return true;
}

template <typename Api>
void HandleText(ExchangePtr exchange, ShardContext& shard) {
  if (!TakesJson(*exchange, shard.api)) return;
  if (exchange->request.body.size() > kLongBody && PlanOnPool<Api>(exchange, shard)) return;
  auto planned = Prepare<Api>(exchange->request.body, shard.parser, *shard.api.models);
  Answer<Api>(std::move(exchange), shard, std::move(planned));
}

ModelCard Card(const ServingModel& model) {
  return {model.id, model.created, model.engine->info().context_length};
}

void HandleModels(ExchangePtr exchange, ShardContext& shard) {
  if (!shard.api.models->ready()) {
    return ReplyError(*exchange, shard.api, shard.api.models->Find("").status());
  }
  std::vector<ModelCard> cards;
  for (const ServingModel* model : shard.api.models->models()) cards.push_back(Card(*model));
  ReplyJson(*exchange, shard.api, 200, ModelListBody(cards));
}

void HandleModel(ExchangePtr exchange, ShardContext& shard) {
  auto model =
      shard.api.models->Find(std::string_view(exchange->request.path).substr(kModelsPath.size()));
  if (!model.ok()) return ReplyError(*exchange, shard.api, model.status());
  ReplyJson(*exchange, shard.api, 200, ModelBody(Card(**model)));
}

}  // namespace

void AddOpenAiRoutes(Router& router) {
  router.Add("POST", "/v1/chat/completions", Access::kKey, HandleText<ChatApi>);
  router.Add("POST", "/v1/completions", Access::kKey, HandleText<CompletionApi>);
  router.Add("GET", "/v1/models", Access::kKey, HandleModels);
  router.Add("GET", "/v1/models/*", Access::kKey, HandleModel);
}

}  // namespace portico::api::openai
