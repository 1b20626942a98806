#include "engine/grpc/vllm_wire.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/grpc/control_codec.h"
#include "engine/grpc/generate_codec.h"
#include "text/json.h"
#include "vllm/grpc/engine/vllm_engine.pb.h"

namespace portico {
namespace {

namespace vllm_pb = ::vllm::grpc::engine;

Status FillSeed(const GenerateRequest& request, vllm_pb::SamplingParams* out) {
  if (!request.sampling->seed) return OkStatus();
  constexpr uint64_t kMost = std::numeric_limits<int32_t>::max();
  const uint64_t seed = *request.sampling->seed;
  if (seed > kMost) {
    return InvalidArgument("seed", "seed: this model's workers take seeds of 31 bits");
  }
  // The choices of one request must differ, and each is a request of its own there.
  out->set_seed(static_cast<int32_t>((seed + static_cast<uint64_t>(request.choice)) & kMost));
  return OkStatus();
}

Status FillVllmSampling(const GenerateRequest& request, vllm_pb::SamplingParams* out) {
  const SamplingParams& sampling = *request.sampling;
  out->set_temperature(sampling.temperature);
  out->set_top_p(sampling.top_p);
  out->set_top_k(static_cast<uint32_t>(std::max(0, sampling.top_k)));
  out->set_min_p(sampling.min_p);
  out->set_frequency_penalty(sampling.frequency_penalty);
  out->set_presence_penalty(sampling.presence_penalty);
  out->set_repetition_penalty(sampling.repetition_penalty);
  out->set_max_tokens(static_cast<uint32_t>(std::max(0, request.max_new_tokens)));
  out->set_min_tokens(static_cast<uint32_t>(std::max(0, sampling.min_new_tokens)));
  for (const TokenId id : sampling.stop_token_ids) {
    out->add_stop_token_ids(static_cast<uint32_t>(id));
  }
  out->set_ignore_eos(sampling.ignore_eos);
  // Text is made here; the worker's own settings for it are those that leave tokens alone.
  out->set_skip_special_tokens(false);
  out->set_spaces_between_special_tokens(true);
  out->set_n(1);
  if (request.return_logprobs) out->set_logprobs(request.top_logprobs);
  if (request.prompt_logprobs_start >= 0) out->set_prompt_logprobs(request.top_logprobs);
  for (const auto& [id, bias] : sampling.logit_bias) (*out->mutable_logit_bias())[id] = bias;
  return FillSeed(request, out);
}

Status FillChoices(const Constraint& constraint, vllm_pb::ChoiceConstraint* out) {
  PORTICO_ASSIGN_OR_RETURN(const Json choices, Json::Parse(constraint.text));
  const bool texts = choices.is_array() && !choices.as_array().empty() &&
                     std::all_of(choices.as_array().begin(), choices.as_array().end(),
                                 [](const Json& each) { return each.is_string(); });
  if (!texts) return InvalidArgument(constraint.field, "a choice is a list of texts");
  for (const Json& each : choices.as_array()) out->add_choices(each.as_string());
  return OkStatus();
}

Status FillVllmConstraint(const Constraint& constraint, vllm_pb::SamplingParams* out) {
  if (constraint.max_thinking_tokens >= 0) {
    return InvalidArgument("max_thinking_tokens",
                           "max_thinking_tokens is not supported by this model's engine, grpc: "
                           "leave it out");
  }
  switch (constraint.kind) {
    case ConstraintKind::kJsonSchema:
      out->set_json_schema(constraint.text);
      break;
    case ConstraintKind::kJsonObject:
      out->set_json_object(true);
      break;
    case ConstraintKind::kRegex:
      out->set_regex(constraint.text);
      break;
    case ConstraintKind::kEbnf:
      out->set_grammar(constraint.text);
      break;
    case ConstraintKind::kStructuralTag:
      out->set_structural_tag(constraint.text);
      break;
    case ConstraintKind::kChoice:
      return FillChoices(constraint, out->mutable_choice());
    case ConstraintKind::kReasoning:
      break;
  }
  return OkStatus();
}

template <typename Ids>
void FillIds(const std::vector<TokenId>& from, Ids* to) {
  to->Reserve(static_cast<int>(from.size()));
  for (const TokenId id : from) to->AddAlreadyReserved(static_cast<uint32_t>(id));
}

}  // namespace

Status VllmWire::EncodeGenerate(const GenerateRequest& request, const std::string& request_id,
                                std::string* bytes) const {
  if (request.logprob_ids != nullptr) {
    return InvalidArgument(
        "token_ids_logprob",
        "token_ids_logprob: this model's workers give no log-probabilities by id");
  }
  PORTICO_RETURN_IF_ERROR(RefusePair(request.extras.get()));
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<vllm_pb::GenerateRequest>(&arena);
  message.set_request_id(request_id);
  FillIds(*request.prompt, message.mutable_tokenized()->mutable_input_ids());
  PORTICO_RETURN_IF_ERROR(FillVllmSampling(request, message.mutable_sampling_params()));
  if (request.constraint != nullptr) {
    PORTICO_RETURN_IF_ERROR(
        FillVllmConstraint(*request.constraint, message.mutable_sampling_params()));
  }
  if (request.extras != nullptr && request.extras->data_parallel_rank) {
    message.set_data_parallel_rank(*request.extras->data_parallel_rank);
  }
  message.set_stream(true);
  if (!message.SerializeToString(bytes)) {
    return Error(StatusCode::kInternal, "the request cannot be serialized");
  }
  return OkStatus();
}

Status VllmWire::DecodeGenerate(std::string_view bytes, StreamProgress* progress,
                                TokenDelta* out) const {
  alignas(8) char memory[2048];
  google::protobuf::ArenaOptions options;
  options.initial_block = memory;
  options.initial_block_size = sizeof(memory);
  google::protobuf::Arena arena(options);
  auto& response = *google::protobuf::Arena::CreateMessage<vllm_pb::GenerateResponse>(&arena);
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  return ReadResponse(response, PromptPart::kWhole, progress, out);
}

StatusOr<TokenWireCall> VllmWire::EncodePooling(const PoolingRequest& request, ModelTask,
                                                const std::string& request_id) const {
  const auto typed = [](uint8_t type) { return type != 0; };
  if (std::any_of(request.token_types.begin(), request.token_types.end(), typed)) {
    return InvalidArgument(
        "token_type_ids", "token_type_ids: this model's workers cannot tell texts of a pair apart");
  }
  vllm_pb::EmbedRequest message;
  message.set_request_id(request_id);
  FillIds(*request.tokens, message.mutable_tokenized()->mutable_input_ids());
  return TokenWireCall{"Embed", message.SerializeAsString()};
}

StatusOr<PoolingOutput> VllmWire::DecodePooling(std::string_view bytes) const {
  vllm_pb::EmbedResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  return ReadEmbedding(response);
}

StatusOr<TokenWorkerFacts> VllmWire::DecodeModelInfo(std::string_view bytes) const {
  vllm_pb::GetModelInfoResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  TokenWorkerFacts facts;
  facts.tokenizer_path = response.tokenizer_path();
  facts.served_model_name = response.served_model_name();
  facts.default_sampling_json = response.default_sampling_params_json();
  EngineInfo& info = facts.info;
  info.name = "grpc";
  info.model_path = response.model_path();
  info.architecture =
      response.architectures_size() > 0 ? response.architectures(0) : response.model_type();
  info.vocab_size = static_cast<int32_t>(response.vocab_size());
  info.context_length = static_cast<int32_t>(response.max_context_length());
  info.task = response.is_generation() ? ModelTask::kGenerate : ModelTask::kEmbed;
  info.can.logprobs = true;
  info.can.prompt_logprobs = true;
  info.can.grammars = true;
  info.can.compiles_grammars = true;
  info.can.pooling = !response.is_generation();
  info.can.profiles = true;
  info.eos_token_ids.assign(response.eos_token_ids().begin(), response.eos_token_ids().end());
  return facts;
}

Status VllmWire::DecodeServerInfo(std::string_view bytes, TokenWorkerFacts* facts) const {
  vllm_pb::GetServerInfoResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  facts->info.can.data_parallel_ranks = RankCount(response.data_parallel_size());
  return OkStatus();
}

StatusOr<TokenWorkerLoad> VllmWire::DecodeLoads(std::string_view bytes, int rank) const {
  vllm_pb::GetLoadsResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  return ReadLoads(response, rank);
}

Status VllmWire::DecodeHealth(std::string_view bytes) const {
  vllm_pb::HealthCheckResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  if (response.healthy()) return OkStatus();
  return Error(StatusCode::kUnavailable, "the worker reports that it is not healthy");
}

StatusOr<TokenWireCall> VllmWire::EncodeControl(const EngineControl& control) const {
  return CommonCall(control);
}

Status VllmWire::DecodeControl(const EngineControl& control, std::string_view bytes) const {
  return CommonOutcome(control, bytes);
}

}  // namespace portico
