#include "api/grpc/scheduler/decode_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "api/common/constraint_fields.h"
#include "api/grpc/field_checks.h"
#include "api/grpc/scheduler/json_struct.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::grpc::scheduler;

Status ReadTokenIds(std::string_view field, const google::protobuf::RepeatedField<uint32_t>& from,
                    std::vector<TokenId>* to) {
  to->reserve(static_cast<size_t>(from.size()));
  for (int i = 0; i < from.size(); ++i) {
    PORTICO_RETURN_IF_ERROR(CheckTokenId(field, static_cast<size_t>(i), from[i]));
    to->push_back(static_cast<TokenId>(from[i]));
  }
  return OkStatus();
}

Status ReadLogitBias(const pb::SamplingParams& params, GenerationOptions* options) {
  for (const auto& [key, bias] : params.logit_bias()) {
    TokenId id = -1;
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) {
      return InvalidArgument("logit_bias",
                             fmt::format("logit_bias: {:.48} is not a token id", key));
    }
    PORTICO_RETURN_IF_ERROR(CheckNumber("logit_bias", bias, kLogitBiasRange));
    options->logit_bias.emplace_back(id, bias);
  }
  std::sort(options->logit_bias.begin(), options->logit_bias.end());
  return OkStatus();
}

Status ReadConstraint(const pb::SamplingParams& params, GenerationOptions* options) {
  const auto set = [options](std::string_view field, ConstraintKind kind, const std::string& text) {
    Constraint constraint;
    constraint.kind = kind;
    constraint.text = text;
    return SetConstraint(field, std::move(constraint), options);
  };
  switch (params.constraint_case()) {
    case pb::SamplingParams::kRegex:
      PORTICO_RETURN_IF_ERROR(set("regex", ConstraintKind::kRegex, params.regex()));
      break;
    case pb::SamplingParams::kJsonSchema:
      PORTICO_RETURN_IF_ERROR(
          set("json_schema", ConstraintKind::kJsonSchema, params.json_schema()));
      break;
    case pb::SamplingParams::kEbnfGrammar:
      PORTICO_RETURN_IF_ERROR(set("ebnf_grammar", ConstraintKind::kEbnf, params.ebnf_grammar()));
      break;
    case pb::SamplingParams::kStructuralTag:
      PORTICO_RETURN_IF_ERROR(
          set("structural_tag", ConstraintKind::kStructuralTag, params.structural_tag()));
      break;
    case pb::SamplingParams::CONSTRAINT_NOT_SET:
      break;
  }
  if (params.stream_interval() > 1) return NotSupported("stream_interval");
  return OkStatus();
}

Status CheckUnsupported(const pb::GenerateRequest& request) {
  const pb::MultimodalInputs& media = request.mm_inputs();
  if (media.ByteSizeLong() > 0) return NotSupported("mm_inputs");
  if (request.token_ids_logprob_size() > 0) return NotSupported("token_ids_logprob");
  return OkStatus();
}

StatusOr<NativeSampling> ReadSampling(const pb::SamplingParams& params) {
  NativeSampling sampling;
  GenerationOptions& options = sampling.options;
  options.max_tokens_field = "max_new_tokens";
  auto number = [](std::string_view field, float value, const NumberRange& range,
                   std::optional<float>* out) {
    if (value == 0 && !range.Holds(0)) return OkStatus();
    *out = value;
    return CheckNumber(field, value, range);
  };
  PORTICO_RETURN_IF_ERROR(
      number("temperature", params.temperature(), kTemperatureRange, &options.temperature));
  PORTICO_RETURN_IF_ERROR(number("top_p", params.top_p(), kTopPRange, &options.top_p));
  PORTICO_RETURN_IF_ERROR(number("min_p", params.min_p(), kMinPRange, &options.min_p));
  PORTICO_RETURN_IF_ERROR(number("frequency_penalty", params.frequency_penalty(), kPenaltyRange,
                                 &options.frequency_penalty));
  PORTICO_RETURN_IF_ERROR(number("presence_penalty", params.presence_penalty(), kPenaltyRange,
                                 &options.presence_penalty));
  PORTICO_RETURN_IF_ERROR(number("repetition_penalty", params.repetition_penalty(),
                                 kRepetitionRange, &options.repetition_penalty));
  PORTICO_RETURN_IF_ERROR(CheckInteger("top_k", params.top_k(), {-1, kMaxInt32}));
  if (params.top_k() != 0) options.top_k = params.top_k();
  if (params.has_max_new_tokens()) {
    PORTICO_RETURN_IF_ERROR(
        CheckInteger("max_new_tokens", params.max_new_tokens(), kAnswerTokensOrNone));
    options.max_tokens = params.max_new_tokens();
    sampling.default_limit = false;
  }
  PORTICO_RETURN_IF_ERROR(CheckInteger("min_new_tokens", params.min_new_tokens(), {0, kMaxInt32}));
  options.min_tokens = static_cast<int32_t>(params.min_new_tokens());
  PORTICO_RETURN_IF_ERROR(CheckStops("stop", params.stop()));
  options.stop.assign(params.stop().begin(), params.stop().end());
  PORTICO_RETURN_IF_ERROR(
      ReadTokenIds("stop_token_ids", params.stop_token_ids(), &options.stop_token_ids));
  options.ignore_eos = params.ignore_eos();
  options.no_stop_trim = params.no_stop_trim();
  if (params.n() != 0) {
    PORTICO_RETURN_IF_ERROR(CheckInteger("n", params.n(), kChoices));
    options.n = static_cast<int32_t>(params.n());
  }
  PORTICO_RETURN_IF_ERROR(ReadLogitBias(params, &options));
  PORTICO_RETURN_IF_ERROR(ReadConstraint(params, &sampling.options));
  return sampling;
}

// One row a token id, one behind the other.
Status ReadEmbeds(const pb::GenerateRequest& from, RequestExtras* extras) {
  constexpr std::string_view kField = "input_embeds";
  if (from.input_embeds_size() == 0) return OkStatus();
  if (from.input_embeds_size() % from.tokenized().input_ids_size() != 0) {
    return InvalidArgument(kField, "input_embeds must have a row of one length for each token id");
  }
  for (const float value : from.input_embeds()) {
    if (!std::isfinite(value))
      return InvalidArgument(kField, "input_embeds must be finite numbers");
  }
  extras->input_embeddings.assign(from.input_embeds().begin(), from.input_embeds().end());
  extras->embedding_size = from.input_embeds_size() / from.tokenized().input_ids_size();
  return OkStatus();
}

// What only some engines honour (service/plan/capability_checks.h).
Status ReadExtras(const pb::GenerateRequest& from, NativeGenerateRequest* to) {
  auto extras = std::make_shared<RequestExtras>();
  extras->return_hidden_states = from.return_hidden_states();
  if (from.sampling_params().custom_params().fields_size() > 0) {
    extras->custom_params = JsonOfStruct(from.sampling_params().custom_params());
  }
  PORTICO_RETURN_IF_ERROR(ReadEmbeds(from, extras.get()));
  extras->lora_id = from.lora_id();
  extras->custom_logit_processor = from.custom_logit_processor();
  // Clients send -1 for "any", and 0 cannot be told from none.
  if (from.data_parallel_rank() > 0) extras->data_parallel_rank = from.data_parallel_rank();
  // An empty message asks for nothing.
  if (const pb::DisaggregatedParams& pair = from.disaggregated_params(); pair.ByteSizeLong() > 0) {
    extras->bootstrap_host = pair.bootstrap_host();
    if (pair.bootstrap_port() > 0) extras->bootstrap_port = pair.bootstrap_port();
    extras->bootstrap_room = pair.bootstrap_room();
  }
  if (extras->return_hidden_states || !extras->custom_params.empty() ||
      !extras->input_embeddings.empty() || !extras->lora_id.empty() ||
      !extras->custom_logit_processor.empty() || extras->data_parallel_rank ||
      extras->bootstrap_room) {
    to->extras.values.push_back(std::move(extras));
  }
  return OkStatus();
}

}  // namespace

StatusOr<NativeGenerateRequest> DecodeScheduler(const pb::GenerateRequest& request) {
  PORTICO_RETURN_IF_ERROR(CheckUnsupported(request));
  NativeGenerateRequest native;
  native.prompt_field = "input_ids";
  if (request.tokenized().input_ids_size() == 0) {
    return InvalidArgument("input_ids", "input_ids must not be empty");
  }
  CompletionRequest::Prompt& prompt = native.prompts.emplace_back();
  prompt.is_ids = true;
  PORTICO_RETURN_IF_ERROR(ReadTokenIds("input_ids", request.tokenized().input_ids(), &prompt.ids));
  PORTICO_RETURN_IF_ERROR(ReadExtras(request, &native));
  PORTICO_RETURN_IF_ERROR(CheckRid("request_id", request.request_id()));
  if (!request.request_id().empty()) native.rid.values.push_back(request.request_id());
  PORTICO_ASSIGN_OR_RETURN(NativeSampling sampling, ReadSampling(request.sampling_params()));
  native.sampling.values.push_back(std::move(sampling));
  native.return_logprob.values.push_back(request.return_logprob());
  PORTICO_RETURN_IF_ERROR(
      CheckInteger("top_logprobs_num", request.top_logprobs_num(), kTopLogprobs));
  native.top_logprobs_num.values.push_back(request.top_logprobs_num());
  if (request.return_logprob()) {
    PORTICO_RETURN_IF_ERROR(
        CheckInteger("logprob_start_len", request.logprob_start_len(), {-1, kMaxInt32}));
    native.logprob_start_len.values.push_back(request.logprob_start_len());
  }
  native.stream = request.stream();
  native.require_reasoning = request.require_reasoning();
  return native;
}

}  // namespace portico::api::rpc
