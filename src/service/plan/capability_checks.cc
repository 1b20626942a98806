#include "service/plan/capability_checks.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace portico {
namespace {

std::string_view FieldOfKind(ConstraintKind kind) {
  switch (kind) {
    case ConstraintKind::kJsonSchema:
      return "json_schema";
    case ConstraintKind::kJsonObject:
      return "response_format";
    case ConstraintKind::kRegex:
      return "regex";
    case ConstraintKind::kEbnf:
      return "ebnf";
    case ConstraintKind::kStructuralTag:
      return "structural_tag";
    case ConstraintKind::kChoice:
      return "guided_choice";
    case ConstraintKind::kReasoning:
      return "max_thinking_tokens";
  }
  return "response_format";
}

// Each extra that an engine may lack: whether the request has it, and whether the engine can.
struct Extra {
  std::string_view field;
  bool (*asked)(const RequestExtras& extras);
  bool EngineCapabilities::* can;
};

constexpr Extra kExtras[] = {
    {"stop_regex", [](const RequestExtras& e) { return !e.stop_regex.empty(); },
     &EngineCapabilities::stop_regex},
    {"session_params", [](const RequestExtras& e) { return e.session.has_value(); },
     &EngineCapabilities::sessions},
    {"lora_path", [](const RequestExtras& e) { return !e.lora_path.empty(); },
     &EngineCapabilities::lora},
    {"lora_id", [](const RequestExtras& e) { return !e.lora_id.empty(); },
     &EngineCapabilities::lora},
    {"return_hidden_states", [](const RequestExtras& e) { return e.return_hidden_states; },
     &EngineCapabilities::hidden_states},
    {"return_routed_experts", [](const RequestExtras& e) { return e.return_routed_experts; },
     &EngineCapabilities::routed_experts},
    {"bootstrap_host", [](const RequestExtras& e) { return !e.bootstrap_host.empty(); },
     &EngineCapabilities::disaggregation},
    {"bootstrap_port", [](const RequestExtras& e) { return e.bootstrap_port.has_value(); },
     &EngineCapabilities::disaggregation},
    {"bootstrap_room", [](const RequestExtras& e) { return e.bootstrap_room.has_value(); },
     &EngineCapabilities::disaggregation},
    {"custom_logit_processor",
     [](const RequestExtras& e) { return !e.custom_logit_processor.empty(); },
     &EngineCapabilities::custom_logit_processors},
    {"custom_params", [](const RequestExtras& e) { return !e.custom_params.empty(); },
     &EngineCapabilities::custom_logit_processors},
    {"extra_key", [](const RequestExtras& e) { return !e.extra_key.empty(); },
     &EngineCapabilities::cache_keys},
    {"cache_salt", [](const RequestExtras& e) { return !e.cache_salt.empty(); },
     &EngineCapabilities::cache_keys},
    {"input_embeds", [](const RequestExtras& e) { return !e.input_embeddings.empty(); },
     &EngineCapabilities::input_embeddings},
};

Status Lacks(const EngineInfo& engine, std::string_view field) {
  return InvalidArgument(
      field, fmt::format("{} is not supported by this model's engine, {}: leave it out", field,
                         engine.name));
}

}  // namespace

Status CheckLogprobs(const EngineInfo& engine, std::string_view field, bool of_prompts) {
  if (engine.can.logprobs && (engine.can.prompt_logprobs || !of_prompts)) return OkStatus();
  return InvalidArgument(
      field, fmt::format("{}: this model's engine, {}, reports no log-probabilities{}", field,
                         engine.name, engine.can.logprobs ? " of prompts" : ""));
}

Status CheckMedia(const EngineInfo& engine, const RequestMedia* media) {
  if (media == nullptr) return OkStatus();
  for (const MediaItem& item : media->items) {
    if (engine.can.Takes(item.kind)) continue;
    const bool text_only = engine.can.media == std::array<bool, kMediaKinds>{};
    const std::string& why = engine.no_media[static_cast<size_t>(item.kind)];
    return InvalidArgument(item.field,
                           fmt::format("{} is {}, {}{}{}", item.place, WordsOf(item.kind).phrase,
                                       text_only ? "but this model takes text only"
                                                 : "which this model's engine does not take",
                                       why.empty() ? "" : ": ", why));
  }
  return OkStatus();
}

Status CheckRank(int32_t rank, int32_t ranks, std::string_view field) {
  if (rank >= 0 && rank < ranks) return OkStatus();
  return InvalidArgument(
      field,
      ranks == 1
          ? fmt::format("{}: this engine lets a request name no rank but 0, got {}", field, rank)
          : fmt::format("{} must be below the engine's {} ranks, got {}", field, ranks, rank));
}

Status CheckCapabilities(const EngineInfo& engine, const Constraint* constraint,
                         const RequestExtras* extras, int32_t priority) {
  if (constraint != nullptr) {
    const bool ready = engine.can.compiles_grammars || constraint->compiled != nullptr ||
                       constraint->kind == ConstraintKind::kReasoning;
    if (!engine.can.grammars || !ready) return Lacks(engine, FieldOfKind(constraint->kind));
  }
  if (priority != 0 && !engine.can.priorities) return Lacks(engine, "priority");
  if (extras == nullptr) return OkStatus();
  PORTICO_RETURN_IF_ERROR(CheckMedia(engine, extras->media.get()));
  for (const Extra& extra : kExtras) {
    if (extra.asked(*extras) && !(engine.can.*extra.can)) return Lacks(engine, extra.field);
  }
  return CheckRank(extras->data_parallel_rank.value_or(0), engine.can.data_parallel_ranks,
                   extras->rank_field);
}

}  // namespace portico
