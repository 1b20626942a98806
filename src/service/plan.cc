#include "service/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "message/sampling_ranges.h"
#include "service/model_task.h"
#include "service/sampling_rules.h"

namespace portico {
namespace {

// The text of a list of content parts, joined as SGLang joins them for templates that want a string.
std::string JoinTextParts(const JsonArray& parts) {
  std::string text;
  bool first = true;
  for (const Json& part : parts) {
    if (part.GetString("type") != "text") continue;
    if (!first) text += ' ';
    first = false;
    text += part.GetString("text");
  }
  return text;
}

// Messages in the form this template understands.
Json FitContent(const ServingModel& model, const Json& messages) {
  Json fitted = messages;
  if (model.chat_template->content_is_list()) return fitted;
  for (Json& message : fitted.as_array()) {
    Json* content = message.Find("content");
    if (content && content->is_array()) *content = Json(JoinTextParts(content->as_array()));
  }
  return fitted;
}

bool HasListContent(const Json& messages) {
  for (const Json& message : messages.as_array()) {
    const Json* content = message.Find("content");
    if (content && content->is_array()) return true;
  }
  return false;
}

Json BareFunctions(const Json& tools) {
  JsonArray bare;
  for (const Json& tool : tools.as_array()) {
    const Json* function = tool.Find("function");
    bare.push_back(function ? *function : tool);
  }
  return Json(std::move(bare));
}

Status CheckMinTokens(const GenerationOptions& options, int32_t max_new_tokens) {
  if (options.min_tokens <= max_new_tokens) return OkStatus();
  return InvalidArgument("min_tokens",
                         fmt::format("min_tokens must be in 0 to {} ({}), got {}", max_new_tokens,
                                     options.max_tokens_field, options.min_tokens));
}

}  // namespace

Status CheckIds(const std::vector<TokenId>& ids, int32_t vocab_size, std::string_view field) {
  // Nearly always all are known: one comparison of the largest, negative ones being larger than any.
  uint32_t largest = 0;
  for (TokenId id : ids) largest = std::max(largest, static_cast<uint32_t>(id));
  if (largest < static_cast<uint32_t>(vocab_size)) return OkStatus();
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

StatusOr<std::string> RenderChat(const ServingModel& model, const ChatRequest& request) {
  if (!model.chat_template) {
    return Error(StatusCode::kFailedPrecondition,
                 "this model has no chat template" +
                     (model.chat_template_error.empty() ? std::string()
                                                        : " (" + model.chat_template_error + ")") +
                     "; start the server with --chat-template, or use /v1/completions",
                 "messages");
  }
  Json fitted;
  ChatTemplate::Request render;
  render.messages = &request.messages;
  if (HasListContent(request.messages)) {
    fitted = FitContent(model, request.messages);
    render.messages = &fitted;
  }
  const bool offers_tools = request.tools.is_array() && request.tool_choice != "none";
  render.tools = offers_tools ? &request.tools : nullptr;
  render.documents = request.documents.is_array() ? &request.documents : nullptr;
  render.kwargs =
      request.chat_template_kwargs.is_object() ? &request.chat_template_kwargs : nullptr;
  render.add_generation_prompt = request.add_generation_prompt && !request.continue_final_message;
  render.continue_final_message = request.continue_final_message;

  StatusOr<std::string> text = model.chat_template->Render(render);
  if (!text.ok() && offers_tools) {
    Json bare = BareFunctions(request.tools);
    render.tools = &bare;
    StatusOr<std::string> second = model.chat_template->Render(render);
    if (second.ok()) return second;
  }
  if (text.ok()) return text;
  std::string field = FieldOf(text.status());
  return InvalidArgument(field.empty() ? "messages" : field, std::string(MessageOf(text.status())));
}

StatusOr<std::vector<TokenId>> EncodeRendered(const ServingModel& model, std::string_view text) {
  std::vector<TokenId> ids;
  const Status status = model.conversation_cache
                            ? model.conversation_cache->Encode(text, &ids).status()
                            : model.tokenizer->TryEncode(text, /*add_special_tokens=*/false, &ids);
  if (!status.ok()) return InvalidArgument("messages", std::string(MessageOf(status)));
  return ids;
}

StatusOr<GenerationPlan> PlanChat(const ServingModel& model, const ChatRequest& request) {
  PORTICO_RETURN_IF_ERROR(CheckGenerates(model));
  const EngineInfo& engine = model.engine->info();
  GenerationPlan plan;
  plan.options = request.options;
  PORTICO_ASSIGN_OR_RETURN(plan.sampling, MakeSampling(request.options, model.defaults, engine));
  PORTICO_ASSIGN_OR_RETURN(std::string text, RenderChat(model, request));
  GenerationPlan::Prompt prompt;
  PORTICO_ASSIGN_OR_RETURN(std::vector<TokenId> ids, EncodeRendered(model, text));
  prompt.ids = std::make_shared<const std::vector<TokenId>>(std::move(ids));
  PORTICO_RETURN_IF_ERROR(CheckIds(*prompt.ids, engine.vocab_size, "messages"));
  PORTICO_ASSIGN_OR_RETURN(
      prompt.max_new_tokens,
      FitContext(static_cast<int64_t>(prompt.ids->size()), request.options, engine, "messages"));
  PORTICO_RETURN_IF_ERROR(CheckMinTokens(request.options, prompt.max_new_tokens));
  plan.prompts.push_back(std::move(prompt));
  return plan;
}

StatusOr<std::vector<TokenId>> EncodePrompt(const ServingModel& model,
                                            const CompletionRequest::Prompt& prompt,
                                            std::string_view field) {
  std::vector<TokenId> ids = prompt.ids;
  if (!prompt.is_ids) {
    const Status status =
        model.tokenizer->TryEncode(prompt.text, /*add_special_tokens=*/true, &ids);
    if (!status.ok()) return InvalidArgument(field, std::string(MessageOf(status)));
  }
  PORTICO_RETURN_IF_ERROR(CheckIds(ids, model.engine->info().vocab_size, field));
  return ids;
}

StatusOr<GenerationPlan> PlanCompletion(const ServingModel& model,
                                        const CompletionRequest& request) {
  PORTICO_RETURN_IF_ERROR(CheckGenerates(model));
  const EngineInfo& engine = model.engine->info();
  GenerationPlan plan;
  plan.options = request.options;
  plan.echo = request.echo;
  if (request.echo && request.options.logprobs) plan.prompt_logprobs_start = 0;
  PORTICO_ASSIGN_OR_RETURN(plan.sampling, MakeSampling(request.options, model.defaults, engine));
  for (const CompletionRequest::Prompt& from : request.prompts) {
    GenerationPlan::Prompt prompt;
    PORTICO_ASSIGN_OR_RETURN(std::vector<TokenId> ids, EncodePrompt(model, from, "prompt"));
    if (request.echo) prompt.text = from.is_ids ? model.tokenizer->Decode(ids, false) : from.text;
    PORTICO_ASSIGN_OR_RETURN(prompt.max_new_tokens, FitContext(static_cast<int64_t>(ids.size()),
                                                               request.options, engine, "prompt"));
    PORTICO_RETURN_IF_ERROR(CheckMinTokens(request.options, prompt.max_new_tokens));
    prompt.ids = std::make_shared<const std::vector<TokenId>>(std::move(ids));
    plan.prompts.push_back(std::move(prompt));
  }
  return plan;
}

}  // namespace portico
