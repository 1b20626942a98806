#include "service/plain_chat.h"

#include <fmt/format.h>

#include <string_view>

#include "service/plan/capability_checks.h"

namespace portico {
namespace {

Status Refuse(std::string_view field) {
  return InvalidArgument(field, fmt::format("{}: no stage of this pipeline supports it", field));
}

}  // namespace

Status CheckPlainChat(const ChatRequest& chat) {
  const GenerationOptions& options = chat.options;
  if (options.n != 1) return Refuse("n");
  PORTICO_RETURN_IF_ERROR(CheckSpokenChat(options));
  if (!options.logit_bias.empty()) return Refuse("logit_bias");
  if (options.min_tokens != 0) return Refuse("min_tokens");
  if (!options.stop_token_ids.empty()) return Refuse("stop_token_ids");
  if (options.ignore_eos) return Refuse("ignore_eos");
  if (options.no_stop_trim) return Refuse("no_stop_trim");
  if (!options.skip_special_tokens) return Refuse("skip_special_tokens");
  if (options.max_thinking_tokens) return Refuse("max_thinking_tokens");
  if (!chat.documents.is_null()) return Refuse("documents");
  if (!chat.separate_reasoning) return Refuse("separate_reasoning");
  if (!chat.stream_reasoning) return Refuse("stream_reasoning");
  if (!chat.add_generation_prompt) return Refuse("add_generation_prompt");
  if (chat.continue_final_message) return Refuse("continue_final_message");
  const bool some_allowed = !chat.tool_choice.allowed.empty() && chat.tool_choice.name.empty();
  if (some_allowed) return Refuse("tool_choice");
  // It has no capabilities.
  EngineInfo engine;
  engine.name = "a stage of a pipeline";
  return CheckCapabilities(engine, options.constraint.get(), options.extras.get(),
                           options.priority);
}

Status CheckIsChat(const pipeline::Request& request) {
  if (request.chat != nullptr) return OkStatus();
  const std::string_view field = request.task == pipeline::Task::kTranscription ? "file" : "input";
  return InvalidArgument(
      field, fmt::format("{}: this pipeline answers chats only and does not support {}", field,
                         pipeline::TaskName(request.task)));
}

Status CheckSpokenChat(const GenerationOptions& options) {
  if (options.logprobs) return Refuse("logprobs");
  if (options.return_token_ids) return Refuse("return_token_ids");
  if (options.continuous_usage_stats) return Refuse("stream_options");
  if (options.legacy_functions) return Refuse("functions");
  if (options.extras == nullptr) return OkStatus();
  if (options.extras->return_hidden_states) return Refuse("return_hidden_states");
  if (options.extras->return_routed_experts) return Refuse("return_routed_experts");
  return OkStatus();
}

}  // namespace portico
