#include "engine/grpc/scheduler_wire.h"

#include <google/protobuf/arena.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/grpc/control_codec.h"
#include "engine/grpc/generate_codec.h"
#include "message/choice_regex.h"
#include "message/protobuf.h"
#include "sglang/grpc/scheduler/sglang_scheduler.pb.h"
#include "text/json.h"

namespace portico {
namespace {

namespace pb = ::sglang::grpc::scheduler;

// What no worker says of itself: two, where a model tells pairs of texts apart.
constexpr int32_t kTokenTypes = 2;
constexpr int kMaxLabels = 1 << 16;
constexpr int32_t kAnyRank = -1;
// The field data_parallel_rank with 0, which proto3 leaves out of a field without presence. In newer workers' proto the
// field is optional, and one that is missing means any rank.
constexpr std::string_view kGenerateOnRankZero("\x80\x01\x00", 3);
constexpr std::string_view kEmbedOnRankZero("\x40\x00", 2);

// id2label: the names by number, as text. Numbers without a name are named as transformers does.
Status ReadLabels(const std::string& id2label, int count, std::vector<std::string>* labels) {
  if (count < 0 || count > kMaxLabels) return BadWorkerMessage("the number of labels");
  for (int i = 0; i < count; ++i) labels->push_back("LABEL_" + std::to_string(i));
  if (id2label.empty() || count == 0) return OkStatus();
  PORTICO_ASSIGN_OR_RETURN(const Json names, Json::Parse(id2label));
  for (int i = 0; i < count; ++i) {
    std::string& label = (*labels)[static_cast<size_t>(i)];
    label = names.GetString(std::to_string(i), label);
  }
  return OkStatus();
}

void FillSampling(const GenerateRequest& request, pb::SamplingParams* out) {
  const SamplingParams& sampling = *request.sampling;
  out->set_temperature(sampling.temperature);
  out->set_top_p(sampling.top_p);
  out->set_top_k(sampling.top_k);
  out->set_min_p(sampling.min_p);
  out->set_frequency_penalty(sampling.frequency_penalty);
  out->set_presence_penalty(sampling.presence_penalty);
  out->set_repetition_penalty(sampling.repetition_penalty);
  out->set_max_new_tokens(static_cast<uint32_t>(std::max(0, request.max_new_tokens)));
  out->set_min_new_tokens(static_cast<uint32_t>(std::max(0, sampling.min_new_tokens)));
  for (const TokenId id : sampling.stop_token_ids) {
    out->add_stop_token_ids(static_cast<uint32_t>(id));
  }
  out->set_ignore_eos(sampling.ignore_eos);
  // Text is made here; the worker's own settings for it are those that leave tokens alone.
  out->set_skip_special_tokens(false);
  out->set_no_stop_trim(true);
  out->set_n(1);
  for (const auto& [id, bias] : sampling.logit_bias) {
    (*out->mutable_logit_bias())[std::to_string(id)] = bias;
  }
}

Status FillConstraint(const Constraint& constraint, pb::SamplingParams* out) {
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
      out->set_json_schema(R"({"type": "object"})");
      break;
    case ConstraintKind::kRegex:
      out->set_regex(constraint.text);
      break;
    case ConstraintKind::kEbnf:
      out->set_ebnf_grammar(constraint.text);
      break;
    case ConstraintKind::kStructuralTag:
      out->set_structural_tag(constraint.text);
      break;
    case ConstraintKind::kChoice: {
      PORTICO_ASSIGN_OR_RETURN(std::string regex, RegexOfChoices(constraint.text));
      out->set_regex(std::move(regex));
      break;
    }
    case ConstraintKind::kReasoning:
      break;
  }
  return OkStatus();
}

// Where the other half of a pair waits.
Status FillPair(const GenerateRequest& request, pb::GenerateRequest* out) {
  const RequestExtras& extras = *request.extras;
  if (!extras.bootstrap_room) {
    if (extras.bootstrap_host.empty() && !extras.bootstrap_port) return OkStatus();
    return InvalidArgument("bootstrap_room", "bootstrap_room is required with bootstrap_host");
  }
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t behind = int64_t{request.choice} * extras.bootstrap_room_step;
  if (*extras.bootstrap_room > kMost - behind) {
    return InvalidArgument("bootstrap_room",
                           "bootstrap_room: this model's workers take rooms of 31 bits");
  }
  pb::DisaggregatedParams& pair = *out->mutable_disaggregated_params();
  pair.set_bootstrap_host(extras.bootstrap_host);
  pair.set_bootstrap_port(extras.bootstrap_port.value_or(0));  // 0: the worker's own
  pair.set_bootstrap_room(static_cast<int32_t>(*extras.bootstrap_room + behind));
  return OkStatus();
}

}  // namespace

Status SchedulerWire::EncodeGenerate(const GenerateRequest& request, const std::string& request_id,
                                     std::string* bytes) const {
  if (request.sampling->seed) {
    return InvalidArgument("seed", "seed: this model's workers take no seed");
  }
  if (request.logprob_ids != nullptr) {
    return InvalidArgument(
        "token_ids_logprob",
        "token_ids_logprob: this model's workers give no log-probabilities by id");
  }
  google::protobuf::Arena arena;
  auto& message = *google::protobuf::Arena::CreateMessage<pb::GenerateRequest>(&arena);
  message.set_request_id(request_id);
  auto& ids = *message.mutable_tokenized()->mutable_input_ids();
  ids.Reserve(static_cast<int>(request.prompt->size()));
  for (const TokenId id : *request.prompt) ids.AddAlreadyReserved(static_cast<uint32_t>(id));
  FillSampling(request, message.mutable_sampling_params());
  if (request.constraint != nullptr) {
    PORTICO_RETURN_IF_ERROR(FillConstraint(*request.constraint, message.mutable_sampling_params()));
    message.set_require_reasoning(BeginsInReasoning(*request.constraint));
  }
  message.set_return_logprob(request.return_logprobs);
  message.set_logprob_start_len(request.prompt_logprobs_start);
  message.set_top_logprobs_num(request.top_logprobs);
  message.set_stream(true);
  if (request.extras != nullptr) PORTICO_RETURN_IF_ERROR(FillPair(request, &message));
  const int32_t rank =
      request.extras == nullptr ? kAnyRank : request.extras->data_parallel_rank.value_or(kAnyRank);
  if (rank > 0) message.set_data_parallel_rank(rank);
  if (!message.SerializeToString(bytes)) {
    return Error(StatusCode::kInternal, "the request cannot be serialized");
  }
  if (rank == 0) bytes->append(kGenerateOnRankZero);
  return OkStatus();
}

Status SchedulerWire::DecodeGenerate(std::string_view bytes, StreamProgress* progress,
                                     TokenDelta* out) const {
  // Most messages are one token: from a buffer on the stack.
  alignas(8) char memory[2048];
  google::protobuf::ArenaOptions options;
  options.initial_block = memory;
  options.initial_block_size = sizeof(memory);
  google::protobuf::Arena arena(options);
  auto& response = *google::protobuf::Arena::CreateMessage<pb::GenerateResponse>(&arena);
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  return ReadResponse(response, PromptPart::kFromStart, progress, out);
}

StatusOr<TokenWireCall> SchedulerWire::EncodePooling(const PoolingRequest& request, ModelTask,
                                                     const std::string& request_id) const {
  pb::EmbedRequest message;
  message.set_request_id(request_id);
  auto& ids = *message.mutable_tokenized()->mutable_input_ids();
  ids.Reserve(static_cast<int>(request.tokens->size()));
  for (const TokenId id : *request.tokens) ids.AddAlreadyReserved(static_cast<uint32_t>(id));
  message.mutable_token_type_ids()->Add(request.token_types.begin(), request.token_types.end());
  if (request.data_parallel_rank > 0) message.set_data_parallel_rank(request.data_parallel_rank);
  TokenWireCall call{"Embed", message.SerializeAsString()};
  if (request.data_parallel_rank == 0) call.request.append(kEmbedOnRankZero);
  return call;
}

StatusOr<PoolingOutput> SchedulerWire::DecodePooling(std::string_view bytes) const {
  pb::EmbedResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  return ReadEmbedding(response);
}

StatusOr<TokenWorkerFacts> SchedulerWire::DecodeModelInfo(std::string_view bytes) const {
  pb::GetModelInfoResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  TokenWorkerFacts facts;
  facts.tokenizer_path = response.tokenizer_path();
  facts.served_model_name = response.served_model_name();
  facts.default_sampling_json = response.default_sampling_params_json().empty()
                                    ? response.preferred_sampling_params()
                                    : response.default_sampling_params_json();
  EngineInfo& info = facts.info;
  info.name = "grpc";
  info.model_path = response.model_path();
  info.architecture =
      response.architectures_size() > 0 ? response.architectures(0) : response.model_type();
  info.vocab_size = response.vocab_size();
  info.context_length = response.max_context_length();
  info.task = response.is_generation()    ? ModelTask::kGenerate
              : response.num_labels() > 0 ? ModelTask::kClassify
                                          : ModelTask::kEmbed;
  PORTICO_RETURN_IF_ERROR(
      ReadLabels(response.id2label_json(), response.num_labels(), &info.labels));
  info.token_types = response.is_generation() ? 1 : kTokenTypes;
  info.can.pooling = !response.is_generation();
  info.can.profiles = true;
  info.can.logprobs = true;
  info.can.prompt_logprobs = true;
  // A worker without a grammar backend refuses the request itself.
  info.can.grammars = true;
  info.can.compiles_grammars = true;
  info.eos_token_ids.assign(response.eos_token_ids().begin(), response.eos_token_ids().end());
  return facts;
}

Status SchedulerWire::DecodeServerInfo(std::string_view bytes, TokenWorkerFacts* facts) const {
  pb::GetServerInfoResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  facts->info.max_total_tokens = response.max_total_num_tokens();
  const auto& args = response.server_args().fields();
  if (const auto size = args.find("dp_size"); size != args.end()) {
    facts->info.can.data_parallel_ranks = RankCount(size->second.number_value());
    facts->info.can.pooling_ranks = facts->info.can.data_parallel_ranks;
  }
  if (const auto mode = args.find("disaggregation_mode"); mode != args.end()) {
    facts->disaggregation_mode = mode->second.string_value();
  }
  return OkStatus();
}

StatusOr<TokenWorkerLoad> SchedulerWire::DecodeLoads(std::string_view bytes, int rank) const {
  pb::GetLoadsResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  return ReadLoads(response, rank);
}

Status SchedulerWire::DecodeHealth(std::string_view bytes) const {
  pb::HealthCheckResponse response;
  PORTICO_RETURN_IF_ERROR(ParseProtobuf(bytes, &response));
  if (response.healthy()) return OkStatus();
  return Error(StatusCode::kUnavailable, "the worker reports that it is not healthy");
}

StatusOr<TokenWireCall> SchedulerWire::EncodeControl(const EngineControl& control) const {
  return CommonCall(control);
}

Status SchedulerWire::DecodeControl(const EngineControl& control, std::string_view bytes) const {
  return CommonOutcome(control, bytes);
}

}  // namespace portico
