#include "engine/grpc/native_wire.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <utility>

#include "engine/grpc/control_codec.h"
#include "engine/grpc/generate_codec.h"
#include "engine/grpc/native_meta.h"
#include "sglang/runtime/v1/sglang.pb.h"
#include "text/json.h"

namespace portico {
namespace {

namespace native_pb = ::sglang::runtime::v1;

Status FillNativeSampling(const GenerateRequest& request, native_pb::SamplingParams* out) {
  const SamplingParams& sampling = *request.sampling;
  if (!sampling.logit_bias.empty()) {
    return InvalidArgument("logit_bias", "logit_bias: this model's workers do not support it");
  }
  out->set_temperature(sampling.temperature);
  out->set_top_p(sampling.top_p);
  out->set_top_k(sampling.top_k);
  out->set_min_p(sampling.min_p);
  out->set_frequency_penalty(sampling.frequency_penalty);
  out->set_presence_penalty(sampling.presence_penalty);
  out->set_repetition_penalty(sampling.repetition_penalty);
  out->set_max_new_tokens(request.max_new_tokens);
  out->set_min_new_tokens(sampling.min_new_tokens);
  out->mutable_stop_token_ids()->Add(sampling.stop_token_ids.begin(),
                                     sampling.stop_token_ids.end());
  out->set_ignore_eos(sampling.ignore_eos);
  out->set_n(1);
  if (sampling.seed) {
    // The choices of one request must differ, and each is a request of its own there.
    constexpr uint64_t kMost = INT64_MAX;
    const uint64_t seed = *sampling.seed + static_cast<uint64_t>(request.choice);
    out->set_seed(static_cast<int64_t>(seed & kMost));
  }
  return OkStatus();
}

Status FillNativeConstraint(const Constraint& constraint, native_pb::SamplingParams* out) {
  switch (constraint.kind) {
    // Older servers know these two by their first names only.
    case ConstraintKind::kJsonSchema:
      out->set_json_schema(constraint.text);
      break;
    case ConstraintKind::kJsonObject:
      out->set_json_schema(R"({"type": "object"})");
      break;
    case ConstraintKind::kRegex:
      out->set_regex(constraint.text);
      break;
    case ConstraintKind::kEbnf:
      out->mutable_guided_decoding()->set_ebnf(constraint.text);
      break;
    case ConstraintKind::kStructuralTag:
      out->mutable_guided_decoding()->set_structural_tag(constraint.text);
      break;
    case ConstraintKind::kChoice: {
      PORTICO_ASSIGN_OR_RETURN(const Json choices, Json::Parse(constraint.text));
      if (!choices.is_array()) {
        return InvalidArgument(constraint.field, "a choice is a list of texts");
      }
      auto& values = *out->mutable_guided_decoding()->mutable_choice();
      for (const Json& each : choices.as_array()) {
        if (!each.is_string()) {
          return InvalidArgument(constraint.field, "a choice is a list of texts");
        }
        values.add_values(each.as_string());
      }
      break;
    }
    case ConstraintKind::kReasoning:
      break;
  }
  return OkStatus();
}

// Of `size` tokens in a message, those that no message before has brought.
StatusOr<int> FreshTokens(int size, int total, int received) {
  if (size == 0 || total < 0 || received + size == total) return size;
  if (size == total && size >= received) return size - received;
  return BadWorkerMessage("the number of its tokens");
}

}  // namespace

Status NativeWire::EncodeGenerate(const GenerateRequest& request, const std::string& request_id,
                                  std::string* bytes) const {
  if (request.logprob_ids != nullptr) {
    return InvalidArgument(
        "token_ids_logprob",
        "token_ids_logprob: this model's workers give no log-probabilities by id");
  }
  PORTICO_RETURN_IF_ERROR(RefusePair(request.extras.get()));
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<native_pb::GenerateRequest>(&arena);
  message.mutable_input_ids()->Add(request.prompt->begin(), request.prompt->end());
  PORTICO_RETURN_IF_ERROR(FillNativeSampling(request, message.mutable_sampling_params()));
  if (request.constraint != nullptr) {
    const Constraint& constraint = *request.constraint;
    PORTICO_RETURN_IF_ERROR(FillNativeConstraint(constraint, message.mutable_sampling_params()));
    message.set_require_reasoning(constraint.BeginsInReasoning());
    if (constraint.max_thinking_tokens >= 0) {
      message.set_max_thinking_tokens(static_cast<uint32_t>(constraint.max_thinking_tokens));
    }
  }
  message.set_stream(true);
  message.set_return_logprob(request.return_logprobs);
  message.set_top_logprobs_num(request.top_logprobs);
  message.set_logprob_start_len(request.prompt_logprobs_start);
  message.set_rid(request_id);
  if (request.extras != nullptr && request.extras->data_parallel_rank) {
    message.set_routed_dp_rank(*request.extras->data_parallel_rank);
  }
  if (request.trace.valid()) {
    (*message.mutable_trace_headers())["traceparent"] = FormatTraceparent(request.trace);
  }
  if (!message.SerializeToString(bytes)) {
    return Error(StatusCode::kInternal, "the request cannot be serialized");
  }
  return OkStatus();
}

Status NativeWire::DecodeGenerate(std::string_view bytes, StreamProgress* progress,
                                  TokenDelta* out) const {
  alignas(8) char memory[2048];
  google::protobuf::ArenaOptions options;
  options.initial_block = memory;
  options.initial_block_size = sizeof(memory);
  google::protobuf::Arena arena(options);
  auto& response = *google::protobuf::Arena::CreateMessage<native_pb::GenerateResponse>(&arena);
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  const auto& meta = response.meta_info();
  out->usage.prompt_tokens = std::max(0, MetaCount(meta, "prompt_tokens"));
  out->usage.cached_tokens = std::max(0, MetaCount(meta, "cached_tokens"));
  const int total = MetaCount(meta, "completion_tokens");
  out->usage.completion_tokens = std::max(0, total);
  const int size = response.output_ids_size();
  PORTICO_ASSIGN_OR_RETURN(const int fresh, FreshTokens(size, total, progress->received));
  for (int i = size - fresh; i < size; ++i) out->tokens.push_back(response.output_ids(i));
  progress->received += fresh;
  PORTICO_RETURN_IF_ERROR(ReadMetaLogprobs(meta, fresh, &out->logprobs));
  if (progress->prompt_logprobs_start >= 0 && !progress->told_prompt) {
    PORTICO_RETURN_IF_ERROR(
        ReadMetaPromptLogprobs(meta, progress->prompt_logprobs_start, &out->prompt_logprobs));
    progress->told_prompt = !out->prompt_logprobs.empty();
  }
  PORTICO_RETURN_IF_ERROR(ReadMetaFinish(meta, out));
  if (response.finished() && out->finish == FinishReason::kNone) {
    return BadWorkerMessage("an end without a reason");
  }
  return OkStatus();
}

StatusOr<TokenWireCall> NativeWire::EncodePooling(const PoolingRequest& request, ModelTask task,
                                                  const std::string& request_id) const {
  const auto typed = [](uint8_t type) { return type != 0; };
  if (std::any_of(request.token_types.begin(), request.token_types.end(), typed)) {
    return InvalidArgument(
        "token_type_ids", "token_type_ids: this model's workers cannot tell texts of a pair apart");
  }
  const auto fill = [&](auto message, std::string_view method) {
    message.mutable_input_ids()->Add(request.tokens->begin(), request.tokens->end());
    message.set_rid(request_id);
    return TokenWireCall{method, message.SerializeAsString()};
  };
  if (task == ModelTask::kClassify) return fill(native_pb::ClassifyRequest(), "Classify");
  return fill(native_pb::EmbedRequest(), "Embed");
}

StatusOr<PoolingOutput> NativeWire::DecodePooling(std::string_view bytes) const {
  // ClassifyResponse has the same fields.
  native_pb::EmbedResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  if (response.embedding_size() == 0) return BadWorkerMessage("an empty vector");
  PoolingOutput output;
  output.values.assign(response.embedding().begin(), response.embedding().end());
  output.prompt_tokens = std::max(0, MetaCount(response.meta_info(), "prompt_tokens"));
  return output;
}

StatusOr<TokenWorkerFacts> NativeWire::DecodeModelInfo(std::string_view bytes) const {
  native_pb::GetModelInfoResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  PORTICO_ASSIGN_OR_RETURN(const Json said, Json::Parse(response.json_info()));
  return FactsOfModelInfo(said, response.model_path());
}

Status NativeWire::DecodeServerInfo(std::string_view bytes, TokenWorkerFacts* facts) const {
  native_pb::GetServerInfoResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  PORTICO_ASSIGN_OR_RETURN(const Json said, Json::Parse(response.json_info()));
  facts->info.max_total_tokens = said.GetInt("max_total_num_tokens", 0);
  facts->info.can.data_parallel_ranks = RankCount(said.GetDouble("dp_size", 1));
  const std::string name = said.GetString("served_model_name");
  if (facts->served_model_name.empty()) facts->served_model_name = name;
  return OkStatus();
}

Status NativeWire::DecodeModels(std::string_view bytes, TokenWorkerFacts* facts) const {
  native_pb::ListModelsResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  if (response.models_size() == 0) return BadWorkerMessage("it serves no model");
  const native_pb::ModelCard& card = response.models(0);
  if (facts->info.context_length <= 0) facts->info.context_length = card.max_model_len();
  if (facts->served_model_name.empty()) facts->served_model_name = card.id();
  return CompleteFacts(facts);
}

StatusOr<TokenWorkerLoad> NativeWire::DecodeLoads(std::string_view bytes, int rank) const {
  native_pb::GetLoadResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  PORTICO_ASSIGN_OR_RETURN(const Json ranks, Json::Parse(response.json_info()));
  return LoadOfRanks(ranks, rank);
}

StatusOr<bool> NativeWire::DecodePaused(std::string_view bytes) const {
  native_pb::EngineStateSnapshot state;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &state));
  return state.is_pause();
}

Status NativeWire::DecodeHealth(std::string_view bytes) const {
  native_pb::HealthCheckResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  if (response.healthy()) return OkStatus();
  return Error(StatusCode::kUnavailable, "the worker reports that it is not healthy");
}

StatusOr<TokenWireCall> NativeWire::EncodeControl(const EngineControl& control) const {
  if (std::holds_alternative<FlushCacheControl>(control)) return TokenWireCall{"FlushCache", ""};
  if (const auto* pause = std::get_if<PauseControl>(&control)) {
    native_pb::PauseGenerationRequest message;
    message.set_mode(pause->mode == PauseMode::kAbort     ? "abort"
                     : pause->mode == PauseMode::kRetract ? "retract"
                                                          : "in_place");
    return TokenWireCall{"PauseGeneration", message.SerializeAsString()};
  }
  if (const auto* go_on = std::get_if<ContinueControl>(&control)) {
    if (!go_on->torch_empty_cache) {
      return CannotControlField("of this model's workers", "torch_empty_cache");
    }
    return TokenWireCall{"ContinueGeneration", ""};
  }
  if (const auto* update = std::get_if<UpdateWeightsControl>(&control)) {
    const std::string_view field = update->abort_requests    ? "abort_all_requests"
                                   : !update->flush_cache    ? "flush_cache"
                                   : !update->others.empty() ? update->others.front().first
                                                             : std::string_view();
    if (!field.empty()) return CannotControlField("of this model's workers", field);
    native_pb::UpdateWeightsRequest message;
    message.set_model_path(update->path);
    if (!update->load_format.empty()) message.set_load_format(update->load_format);
    return TokenWireCall{"UpdateWeightsFromDisk", message.SerializeAsString()};
  }
  if (const auto* start = std::get_if<StartProfileControl>(&control)) {
    const std::pair<std::string_view, bool> missing[] = {
        {"start_step", start->start_step.has_value()},
        {"num_steps", start->num_steps.has_value()},
        {"activities", !start->activities.empty()},
        {"with_stack", start->with_stack.has_value()},
        {"record_shapes", start->record_shapes.has_value()},
        {"profile_by_stage", start->by_stage},
        {"merge_profiles", start->merge},
        {"profile_prefix", !start->prefix.empty()}};
    for (const auto& [field, asked] : missing) {
      if (asked) return CannotControlField("of this model's workers", field);
    }
    native_pb::StartProfileRequest message;
    if (!start->output_dir.empty()) message.set_output_dir(start->output_dir);
    return TokenWireCall{"StartProfile", message.SerializeAsString()};
  }
  if (std::holds_alternative<StopProfileControl>(control)) return TokenWireCall{"StopProfile", ""};
  return CannotControl("of this model's workers", control);
}

Status NativeWire::DecodeControl(const EngineControl& control, std::string_view bytes) const {
  if (std::holds_alternative<FlushCacheControl>(control)) {
    return OutcomeIn<native_pb::FlushCacheResponse>(bytes);
  }
  if (std::holds_alternative<UpdateWeightsControl>(control)) {
    return OutcomeIn<native_pb::UpdateWeightsResponse>(bytes);
  }
  return OkStatus();
}

}  // namespace portico
