#include "service/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/events/recorder.h"
#include "base/thread_time.h"
#include "message/sampling_ranges.h"
#include "service/constraint/constrain.h"
#include "service/model_task.h"
#include "service/output/output_plan.h"
#include "service/plan/capability_checks.h"
#include "service/plan/request_cost.h"
#include "service/plan/request_media.h"
#include "service/plan/sampling_rules.h"
#include "template/fit_conversation.h"

namespace portico {
namespace {

constexpr size_t kShortText = 16 << 10;
// The least that texts of most languages have.
constexpr size_t kBytesOfToken = 3;

Status CheckMinTokens(const GenerationOptions& options, int32_t max_new_tokens) {
  if (options.min_tokens <= max_new_tokens) return OkStatus();
  return InvalidArgument("min_tokens",
                         fmt::format("min_tokens must be in 0 to {} ({}), got {}", max_new_tokens,
                                     options.max_tokens_field, options.min_tokens));
}

Status Share(const GenerationOptions& options, const ServingModel& model, GenerationPlan* plan) {
  plan->options = options;
  PORTICO_ASSIGN_OR_RETURN(SharedOptions shared,
                           ShareOptions(model.defaults, model.engine->info(), &plan->options));
  plan->sampling = std::move(shared.sampling);
  plan->stops = std::move(shared.stops);
  PORTICO_ASSIGN_OR_RETURN(plan->constraint, ConstraintFor(model, options));
  plan->extras = plan->options.extras;  // what encodes the answer looks at the options
  plan->priority = plan->options.priority;
  return OkStatus();
}

// What a template goes through: messages, their parts and calls, tools.
size_t RenderedItems(const ChatRequest& request) {
  size_t items = 0;
  const auto count = [&items](const Json* list) {
    if (list != nullptr && list->is_array()) items += list->as_array().size();
  };
  count(&request.tools);
  count(&request.documents);
  count(&request.messages);
  if (!request.messages.is_array()) return items;
  for (const Json& message : request.messages.as_array()) {
    if (!message.is_object()) continue;
    count(message.Find("content"));
    count(message.Find("tool_calls"));
  }
  return items;
}

// About what a template writes that shows the value once.
size_t ShownBytes(const Json& json) {
  size_t bytes = 8;  // a number, or what is around a value
  if (json.is_string()) {
    bytes += json.as_string().size();
  } else if (json.is_array()) {
    for (const Json& item : json.as_array()) bytes += ShownBytes(item);
  } else if (json.is_object()) {
    for (const auto& [name, value] : json.as_object()) bytes += name.size() + ShownBytes(value);
  }
  return bytes;
}

size_t ShownBytes(const ChatRequest& request) {
  return ShownBytes(request.messages) + ShownBytes(request.tools) + ShownBytes(request.documents) +
         ShownBytes(request.chat_template_kwargs);
}

}  // namespace

size_t WorkOf(const std::vector<CompletionRequest::Prompt>& prompts) {
  size_t work = prompts.size() * kPromptWork;
  for (const CompletionRequest::Prompt& prompt : prompts) work += prompt.text.size();
  return work;
}

std::shared_ptr<const RequestExtras> PlaceMedia(std::shared_ptr<const RequestExtras> extras,
                                                std::string text, bool limit_is_asked,
                                                int32_t choices, int64_t max_bytes) {
  if (extras == nullptr || extras->media == nullptr) return extras;
  auto media = std::make_shared<RequestMedia>(*extras->media);
  media->text = std::move(text);
  media->limit_is_asked = limit_is_asked;
  media->choices = choices;
  media->max_made_bytes = max_bytes;
  return WithMedia(extras, std::move(media));
}

Status CheckIds(const std::vector<TokenId>& ids, int32_t vocab_size, std::string_view field) {
  // Nearly always all are known: neither an id nor what it is below the last one is negative. Vectors do that, also those
  // of 16 bytes, which have no maximum of 32 bits.
  const uint32_t last = static_cast<uint32_t>(vocab_size) - 1;
  uint32_t bits = 0;
  for (TokenId id : ids) bits |= static_cast<uint32_t>(id) | (last - static_cast<uint32_t>(id));
  if (bits >> 31 == 0) return OkStatus();
  for (TokenId id : ids) {
    if (id < 0 || id >= vocab_size) {
      return InvalidArgument(
          field, fmt::format("{}: token id {} is not in the vocabulary (0 to {})", field, id,
                             vocab_size - 1));
    }
  }
  return OkStatus();
}

Status CheckLogprobIds(const std::vector<TokenId>& ids, int32_t vocab_size,
                       std::string_view field) {
  if (ids.size() <= kMaxLogprobIds) return CheckIds(ids, vocab_size, field);
  return InvalidArgument(field,
                         fmt::format("{} must hold at most {} token ids", field, kMaxLogprobIds));
}

StatusOr<std::string> RenderChat(const ServingModel& model, ChatRequest* request, StepGate* gate) {
  const size_t items = RenderedItems(*request);
  PORTICO_RETURN_IF_ERROR(PassGate(gate, model.render_pace->WorkOf(items, kMessageWork)));
  const events::Span span(events::Event::kRenderStart, events::Event::kRenderEnd,
                          events::kFrontend);
  if (!model.chat_template) {
    return Error(StatusCode::kFailedPrecondition,
                 "this model has no chat template" +
                     (model.chat_template_error.empty() ? std::string()
                                                        : " (" + model.chat_template_error + ")") +
                     "; start the server with --chat-template, or use /v1/completions",
                 "messages");
  }
  const RequestExtras* extras = request->options.extras.get();
  PORTICO_RETURN_IF_ERROR(
      CheckMedia(model.engine->info(), extras == nullptr ? nullptr : extras->media.get()));
  Json tools = AllowedTools(request->tools, request->tool_choice);
  const TemplateFacts& facts = model.chat_template->facts(tools.is_array());
  // From here on: to copy large tools, or to look at the template first, is not what messages take.
  const bool teaches = StepPace::Learns(items);
  const Duration began = teaches ? ThreadTime() : Duration::zero();
  PORTICO_RETURN_IF_ERROR(FitConversation(facts, &request->messages));

  ChatTemplate::Request render;
  render.messages = &request->messages;
  render.documents = request->documents.is_array() ? &request->documents : nullptr;
  render.kwargs =
      request->chat_template_kwargs.is_object() ? &request->chat_template_kwargs : nullptr;
  render.add_generation_prompt = request->add_generation_prompt && !request->continue_final_message;
  render.continue_final_message = request->continue_final_message;
  FitRequest(facts, &tools, &render);

  StatusOr<std::string> text = model.chat_template->Render(render);
  if (teaches) {
    // A render that has failed does not tell how much it wrote: as much as it was given, at most.
    model.render_pace->Learn({.items = items,
                              .bytes = text.ok() ? text->size() : ShownBytes(*request),
                              .took = ThreadTime() - began,
                              .is_whole = text.ok()});
  }
  if (text.ok()) return text;
  std::string field = FieldOf(text.status());
  return InvalidArgument(field.empty() ? "messages" : field, std::string(MessageOf(text.status())));
}

Status EncodeText(const ServingModel& model, std::string_view text, bool add_special_tokens,
                  StepGate* gate, std::vector<TokenId>* ids) {
  if (gate == nullptr || model.long_texts == nullptr) {
    return model.tokenizer->TryEncode(text, add_special_tokens, ids);
  }
  const auto go_on = [gate] { return gate->Pass(0); };
  return model.long_texts->Encode(text, add_special_tokens, go_on, ids);
}

StatusOr<std::vector<TokenId>> EncodeRendered(const ServingModel& model, std::string_view text,
                                              StepGate* gate) {
  PORTICO_RETURN_IF_ERROR(PassGate(gate, text.size()));
  events::Span span(events::Event::kTokenizeStart, events::Event::kTokenizeEnd, events::kFrontend);
  std::vector<TokenId> ids;
  // Most chats are short, and their parts are encoded one by one; encoders look ahead in long ones.
  if (text.size() <= kShortText) ids.reserve(text.size() / kBytesOfToken);
  const auto encode = [&model, gate](std::string_view part, std::vector<TokenId>* to) {
    return EncodeText(model, part, /*add_special_tokens=*/false, gate, to);
  };
  const Status status = model.conversation_cache
                            ? model.conversation_cache->Encode(text, encode, &ids).status()
                            : encode(text, &ids);
  if (status.code() == StatusCode::kCancelled) return status;
  if (!status.ok()) return InvalidArgument("messages", std::string(MessageOf(status)));
  span.Tell(static_cast<int64_t>(ids.size()));
  return ids;
}

StatusOr<int32_t> FitPrompt(const ServingModel& model, const GenerationOptions& options,
                            std::string_view prompt_field, std::vector<TokenId>* ids) {
  const EngineInfo& engine = model.engine->info();
  const auto length = static_cast<int64_t>(ids->size());
  const bool wants_answer = options.max_tokens.value_or(1) > 0;
  const int64_t most = engine.context_length - (wants_answer ? 1 : 0);
  const bool fits = options.max_tokens.value_or(1) <= engine.context_length - length;
  if (!model.allow_auto_truncate || fits) {
    return FitContext(length, options, engine, prompt_field);
  }
  if (length > most) ids->resize(static_cast<size_t>(most));
  const auto kept = static_cast<int64_t>(ids->size());
  GenerationOptions limit;
  if (options.max_tokens) {
    limit.max_tokens = std::min(*options.max_tokens, engine.context_length - kept);
  }
  return FitContext(kept, limit, engine, prompt_field);
}

StatusOr<GenerationPlan> PlanChat(const ServingModel& model, ChatRequest&& request,
                                  StepGate* gate) {
  const events::Span span(events::Event::kPreprocessStart, events::Event::kPreprocessEnd,
                          events::kFrontend);
  PORTICO_RETURN_IF_ERROR(CheckGenerates(model));
  const EngineInfo& engine = model.engine->info();
  GenerationPlan plan;
  PORTICO_RETURN_IF_ERROR(Share(request.options, model, &plan));
  if (plan.options.logprobs) {
    PORTICO_RETURN_IF_ERROR(CheckLogprobs(engine, "logprobs", /*of_prompts=*/false));
  }
  RequestCost cost(model.max_request_cost);
  PORTICO_RETURN_IF_ERROR(
      AddAnswer(AnswerCostOf(request.options, engine), engine, "messages", &cost));
  PORTICO_ASSIGN_OR_RETURN(std::string text, RenderChat(model, &request, gate));
  if (plan.extras != nullptr && plan.extras->media != nullptr) {
    plan.extras = PlaceMedia(std::move(plan.extras), text,
                             request.options.max_tokens && !model.allow_auto_truncate,
                             request.options.n, model.max_request_cost);
  }
  plan.continues_prompt = request.continue_final_message;
  const ReasoningStart start = StartOfReasoning(model.output, request, text);
  plan.output = PlanOutput(model.output, request, start, model.forward_unknown_tools);
  PORTICO_ASSIGN_OR_RETURN(plan.constraint,
                           ChatConstraint(model, request, start, std::move(plan.constraint)));
  GenerationPlan::Prompt prompt;
  PORTICO_ASSIGN_OR_RETURN(std::vector<TokenId> ids, EncodeRendered(model, text, gate));
  PORTICO_RETURN_IF_ERROR(CheckIds(ids, engine.vocab_size, "messages"));
  PORTICO_ASSIGN_OR_RETURN(prompt.max_new_tokens,
                           FitPrompt(model, request.options, "messages", &ids));
  prompt.ids = std::make_shared<const std::vector<TokenId>>(std::move(ids));
  PORTICO_RETURN_IF_ERROR(CheckMinTokens(request.options, prompt.max_new_tokens));
  plan.prompts.push_back(std::move(prompt));
  return plan;
}

StatusOr<std::vector<TokenId>> EncodePrompt(const ServingModel& model,
                                            const CompletionRequest::Prompt& prompt,
                                            std::string_view field, StepGate* gate) {
  std::vector<TokenId> ids = prompt.ids;
  if (!prompt.is_ids) {
    events::Span span(events::Event::kTokenizeStart, events::Event::kTokenizeEnd,
                      events::kFrontend);
    const Status status = EncodeText(model, prompt.text, /*add_special_tokens=*/true, gate, &ids);
    span.Tell(static_cast<int64_t>(ids.size()));
    if (status.code() == StatusCode::kCancelled) return status;
    if (!status.ok()) return InvalidArgument(field, std::string(MessageOf(status)));
  }
  PORTICO_RETURN_IF_ERROR(CheckIds(ids, model.engine->info().vocab_size, field));
  return ids;
}

StatusOr<GenerationPlan> PlanCompletion(const ServingModel& model, const CompletionRequest& request,
                                        StepGate* gate) {
  const events::Span span(events::Event::kPreprocessStart, events::Event::kPreprocessEnd,
                          events::kFrontend);
  PORTICO_RETURN_IF_ERROR(CheckGenerates(model));
  const EngineInfo& engine = model.engine->info();
  GenerationPlan plan;
  PORTICO_RETURN_IF_ERROR(Share(request.options, model, &plan));
  plan.echo = request.echo;
  plan.continues_prompt = true;
  if (request.options.logprobs) {
    PORTICO_RETURN_IF_ERROR(CheckLogprobs(engine, "logprobs", /*of_prompts=*/request.echo));
    if (request.echo) plan.prompt_logprobs_start = 0;
  }
  // The best ones are those of the highest log-probability.
  if (request.options.best_of > request.options.n) {
    PORTICO_RETURN_IF_ERROR(CheckLogprobs(engine, "best_of", /*of_prompts=*/false));
  }
  RequestCost cost(model.max_request_cost);
  AnswerCost answer = AnswerCostOf(request.options, engine);
  answer.prompt_logprobs = plan.prompt_logprobs_start >= 0;
  answer.echoes = request.echo || request.options.return_token_ids;
  answer.logprobs_field = "logprobs";
  for (const CompletionRequest::Prompt& from : request.prompts) {
    answer.prompt_bytes = PromptCost(from);
    PORTICO_RETURN_IF_ERROR(AddAnswer(answer, engine, "prompt", &cost));
  }
  PORTICO_RETURN_IF_ERROR(PassGate(gate, WorkOf(request.prompts)));
  for (const CompletionRequest::Prompt& from : request.prompts) {
    PORTICO_RETURN_IF_ERROR(PassGate(gate, 0));
    GenerationPlan::Prompt prompt;
    PORTICO_ASSIGN_OR_RETURN(std::vector<TokenId> ids, EncodePrompt(model, from, "prompt", gate));
    prompt.is_ids = from.is_ids;
    if (request.echo) {
      prompt.text = from.is_ids ? model.tokenizer->Decode(ids, request.options.skip_special_tokens)
                                : from.text;
    }
    PORTICO_ASSIGN_OR_RETURN(prompt.max_new_tokens,
                             FitPrompt(model, request.options, "prompt", &ids));
    PORTICO_RETURN_IF_ERROR(CheckMinTokens(request.options, prompt.max_new_tokens));
    prompt.ids = std::make_shared<const std::vector<TokenId>>(std::move(ids));
    plan.prompts.push_back(std::move(prompt));
  }
  return plan;
}

}  // namespace portico
