#include "api/grpc/native/decode_native.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "api/common/constraint_fields.h"
#include "api/common/field_reader.h"
#include "api/grpc/field_checks.h"

namespace portico::api::rpc {
namespace {

namespace pb = ::sglang::runtime::v1;

Status ReadStops(const pb::SamplingParams& params, GenerationOptions* options) {
  PORTICO_RETURN_IF_ERROR(CheckStops("stop", params.stop()));
  options->stop.assign(params.stop().begin(), params.stop().end());
  for (int i = 0; i < params.stop_token_ids_size(); ++i) {
    const TokenId id = params.stop_token_ids(i);
    PORTICO_RETURN_IF_ERROR(CheckTokenId("stop_token_ids", static_cast<size_t>(i), id));
    options->stop_token_ids.push_back(id);
  }
  return OkStatus();
}

Status ReadConstraint(std::string_view field, ConstraintKind kind, const std::string& text,
                      GenerationOptions* options) {
  Constraint constraint;
  constraint.kind = kind;
  constraint.text = text;
  return SetConstraint(field, std::move(constraint), options);
}

Status ReadGuided(const pb::SamplingParams& params, GenerationOptions* options) {
  if (params.has_guided_decoding() && (params.has_json_schema() || params.has_regex())) {
    return InvalidArgument("guided_decoding",
                           fmt::format("give either guided_decoding or {}, not both",
                                       params.has_json_schema() ? "json_schema" : "regex"));
  }
  if (!params.json_schema().empty()) {
    PORTICO_RETURN_IF_ERROR(
        ReadConstraint("json_schema", ConstraintKind::kJsonSchema, params.json_schema(), options));
  }
  if (!params.regex().empty()) {
    PORTICO_RETURN_IF_ERROR(
        ReadConstraint("regex", ConstraintKind::kRegex, params.regex(), options));
  }
  if (!params.has_guided_decoding()) return OkStatus();
  const pb::GuidedDecoding& guided = params.guided_decoding();
  switch (guided.constraint_case()) {
    case pb::GuidedDecoding::kJsonSchema:
      return ReadConstraint("json_schema", ConstraintKind::kJsonSchema, guided.json_schema(),
                            options);
    case pb::GuidedDecoding::kRegex:
      if (guided.regex().empty()) return InvalidArgument("regex", "regex must not be empty");
      return ReadConstraint("regex", ConstraintKind::kRegex, guided.regex(), options);
    case pb::GuidedDecoding::kEbnf:
      return ReadConstraint("ebnf", ConstraintKind::kEbnf, guided.ebnf(), options);
    case pb::GuidedDecoding::kStructuralTag:
      return ReadConstraint("structural_tag", ConstraintKind::kStructuralTag,
                            guided.structural_tag(), options);
    case pb::GuidedDecoding::kChoice: {
      JsonArray values;
      for (const std::string& value : guided.choice().values()) {
        if (value.empty()) return InvalidArgument("choice", "values of choice must not be empty");
        values.emplace_back(value);
      }
      if (values.empty()) return InvalidArgument("choice", "choice must not be empty");
      return ReadConstraint("choice", ConstraintKind::kChoice, Json(std::move(values)).Dump(),
                            options);
    }
    case pb::GuidedDecoding::CONSTRAINT_NOT_SET:
      break;
  }
  return InvalidArgument("guided_decoding", "guided_decoding must name a constraint");
}

// Fields that both requests have under one name and that nothing here supports.
template <typename Request>
Status CheckUnsupported(const Request& request) {
  if (!request.session_id().empty()) return NotSupported("session_id");
  if (request.kv_hints().actions_size() > 0) return NotSupported("kv_hints");
  return OkStatus();
}

// What only some engines honour (service/plan/capability_checks.h).
template <typename Request>
Status ReadExtras(const Request& from, NativeGenerateRequest* to) {
  auto extras = std::make_shared<RequestExtras>();
  extras->lora_path = from.lora_path();
  if (from.routed_dp_rank() != 0) {
    PORTICO_RETURN_IF_ERROR(CheckInteger("routed_dp_rank", from.routed_dp_rank(), {0, kMaxInt32}));
    extras->data_parallel_rank = from.routed_dp_rank();
    extras->rank_field = "routed_dp_rank";
  }
  // An empty message asks for nothing.
  if (const pb::DisaggregatedParams& pair = from.disaggregated_params(); pair.ByteSizeLong() > 0) {
    PORTICO_RETURN_IF_ERROR(
        CheckInteger("disaggregated_params", pair.bootstrap_port(), {0, 65535}));
    extras->bootstrap_host = pair.bootstrap_host();
    if (pair.bootstrap_port() > 0) extras->bootstrap_port = pair.bootstrap_port();
    extras->bootstrap_room = pair.bootstrap_room();
  }
  to->priority = from.priority();
  if (!extras->lora_path.empty() || extras->data_parallel_rank || extras->bootstrap_room) {
    to->extras.values.push_back(std::move(extras));
  }
  return OkStatus();
}

Status AddMediaData(MediaKind kind, const google::protobuf::RepeatedPtrField<std::string>& urls,
                    NativeGenerateRequest* to) {
  if (urls.empty()) return OkStatus();
  const std::string_view name = WordsOf(kind).data;
  PORTICO_RETURN_IF_ERROR(
      CheckMembers(name, static_cast<size_t>(urls.size()), kMaxMediaOfKind, "items"));
  std::vector<MediaItem> items;
  for (const std::string& url : urls) {
    MediaItem& item = items.emplace_back();
    item.kind = kind;
    item.field = name;
    item.place = fmt::format("{}[{}]", name, items.size() - 1);
    item.url = url;
  }
  if (to->extras.values.empty()) to->extras.values.emplace_back();
  AddMedia(std::move(items), &to->extras.values.front());
  return OkStatus();
}

// All but the prompt.
template <typename Request>
Status ReadShared(Request* from, NativeGenerateRequest* to) {
  PORTICO_RETURN_IF_ERROR(CheckUnsupported(*from));
  PORTICO_RETURN_IF_ERROR(ReadExtras(*from, to));
  PORTICO_ASSIGN_OR_RETURN(NativeSampling sampling, DecodeSampling(from->sampling_params()));
  to->sampling.values.push_back(std::move(sampling));
  to->stream = from->stream();
  to->require_reasoning = from->require_reasoning();
  if (from->has_max_thinking_tokens()) {
    PORTICO_RETURN_IF_ERROR(
        CheckInteger("max_thinking_tokens", from->max_thinking_tokens(), {0, kMaxInt32}));
    to->max_thinking_tokens = static_cast<int32_t>(from->max_thinking_tokens());
  }
  to->return_logprob.values.push_back(from->return_logprob());
  PORTICO_RETURN_IF_ERROR(CheckInteger("top_logprobs_num", from->top_logprobs_num(), kTopLogprobs));
  to->top_logprobs_num.values.push_back(from->top_logprobs_num());
  if (from->has_logprob_start_len()) {
    PORTICO_RETURN_IF_ERROR(
        CheckInteger("logprob_start_len", from->logprob_start_len(), {-1, kMaxInt32}));
    to->logprob_start_len.values.push_back(from->logprob_start_len());
  }
  PORTICO_RETURN_IF_ERROR(CheckRid("rid", from->rid()));
  if (!from->rid().empty()) to->rid.values.push_back(std::move(*from->mutable_rid()));
  return OkStatus();
}

}  // namespace

StatusOr<NativeSampling> DecodeSampling(const pb::SamplingParams& params) {
  NativeSampling sampling;
  GenerationOptions& options = sampling.options;
  options.max_tokens_field = "max_new_tokens";
  auto number = [](std::string_view field, bool given, float value, const NumberRange& range,
                   std::optional<float>* out) {
    if (!given) return OkStatus();
    *out = value;
    return CheckNumber(field, value, range);
  };
  PORTICO_RETURN_IF_ERROR(number("temperature", params.has_temperature(), params.temperature(),
                                 kTemperatureRange, &options.temperature));
  PORTICO_RETURN_IF_ERROR(
      number("top_p", params.has_top_p(), params.top_p(), kTopPRange, &options.top_p));
  PORTICO_RETURN_IF_ERROR(
      number("min_p", params.has_min_p(), params.min_p(), kMinPRange, &options.min_p));
  PORTICO_RETURN_IF_ERROR(number("frequency_penalty", params.has_frequency_penalty(),
                                 params.frequency_penalty(), kPenaltyRange,
                                 &options.frequency_penalty));
  PORTICO_RETURN_IF_ERROR(number("presence_penalty", params.has_presence_penalty(),
                                 params.presence_penalty(), kPenaltyRange,
                                 &options.presence_penalty));
  PORTICO_RETURN_IF_ERROR(number("repetition_penalty", params.has_repetition_penalty(),
                                 params.repetition_penalty(), kRepetitionRange,
                                 &options.repetition_penalty));
  if (params.has_top_k()) {
    if (params.top_k() < -1 || params.top_k() == 0) {
      return InvalidArgument("top_k",
                             fmt::format("top_k must be {}, got {}", kTopKText, params.top_k()));
    }
    options.top_k = params.top_k();
  }
  if (params.has_max_new_tokens()) {
    PORTICO_RETURN_IF_ERROR(
        CheckInteger("max_new_tokens", params.max_new_tokens(), kAnswerTokensOrNone));
    options.max_tokens = params.max_new_tokens();
    sampling.default_limit = false;
  }
  PORTICO_RETURN_IF_ERROR(CheckInteger("min_new_tokens", params.min_new_tokens(), {0, kMaxInt32}));
  options.min_tokens = params.min_new_tokens();
  PORTICO_RETURN_IF_ERROR(ReadStops(params, &options));
  options.ignore_eos = params.ignore_eos();
  if (params.n() != 0) {  // SGLang: 0 counts as 1
    PORTICO_RETURN_IF_ERROR(CheckInteger("n", params.n(), kChoices));
    options.n = params.n();
  }
  if (params.has_seed()) options.seed = params.seed();
  PORTICO_RETURN_IF_ERROR(ReadGuided(params, &options));
  return sampling;
}

StatusOr<NativeGenerateRequest> DecodeTextGenerate(pb::TextGenerateRequest* request) {
  NativeGenerateRequest native;
  native.prompt_field = "text";
  if (request->text().empty()) return InvalidArgument("text", "text must not be empty");
  native.prompts.emplace_back().text = std::move(*request->mutable_text());
  native.return_text_in_logprobs = request->return_text_in_logprobs();
  PORTICO_RETURN_IF_ERROR(ReadShared(request, &native));
  return native;
}

StatusOr<NativeGenerateRequest> DecodeGenerate(pb::GenerateRequest* request) {
  NativeGenerateRequest native;
  native.prompt_field = "input_ids";
  if (request->input_ids_size() == 0) {
    return InvalidArgument("input_ids", "input_ids must not be empty");
  }
  CompletionRequest::Prompt& prompt = native.prompts.emplace_back();
  prompt.is_ids = true;
  prompt.ids.assign(request->input_ids().begin(), request->input_ids().end());
  PORTICO_RETURN_IF_ERROR(ReadShared(request, &native));
  PORTICO_RETURN_IF_ERROR(AddMediaData(MediaKind::kImage, request->image_data(), &native));
  PORTICO_RETURN_IF_ERROR(AddMediaData(MediaKind::kVideo, request->video_data(), &native));
  PORTICO_RETURN_IF_ERROR(AddMediaData(MediaKind::kAudio, request->audio_data(), &native));
  return native;
}

}  // namespace portico::api::rpc
