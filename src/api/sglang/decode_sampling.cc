#include "api/sglang/decode_sampling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "api/common/constraint_fields.h"
#include "api/common/extra_fields.h"
#include "api/common/generation_fields.h"
#include "api/common/refused_fields.h"

namespace portico::api::sglang {
namespace {

// Those keys of sampling_params that mean the same, in the same range, as OpenAI's fields.
constexpr std::string_view kSharedSampling[] = {
    "frequency_penalty",
    "ignore_eos",
    "logit_bias",
    "min_p",
    "n",
    "no_stop_trim",
    "presence_penalty",
    "repetition_penalty",
    "skip_special_tokens",
    "stop",
    "stop_token_ids",
    "temperature",
    "top_k",
    "top_p",
};

Status ReadMaxNewTokens(Element value, GenerationOptions* options) {
  options->max_tokens_field = "max_new_tokens";
  options->max_tokens.reset();  // null: whatever the context has room for
  if (value.is_null()) return OkStatus();
  return ReadInt64("max_new_tokens", value, kAnswerTokensOrNone, &options->max_tokens);
}

// What other APIs call it.
constexpr std::pair<std::string_view, std::string_view> kForeignNames[] = {
    {"max_tokens", "max_new_tokens"},        {"max_completion_tokens", "max_new_tokens"},
    {"n_predict", "max_new_tokens"},         {"max_length", "max_new_tokens"},
    {"min_tokens", "min_new_tokens"},        {"seed", "sampling_seed"},
    {"repeat_penalty", "repetition_penalty"}};

constexpr std::string_view kConstraints[] = {"ebnf", "json_schema", "regex", "structural_tag"};

// `draft` has the options of `sampling` meanwhile.
Status ReadSamplingField(std::string_view name, Element value, NativeSampling* sampling,
                         GenerationDraft* draft) {
  GenerationOptions& options = draft->options;
  if (name == "max_new_tokens") {
    sampling->default_limit = false;
    return ReadMaxNewTokens(value, &options);
  }
  if (value.is_null()) return OkStatus();
  if (name == "min_new_tokens") {
    return ReadInt32(name, value, {0, kMaxInt32}, &options.min_tokens);
  }
  if (name == "stream_interval") {
    return ReadInt32(name, value, {1, kMaxInt32}, &sampling->stream_interval);
  }
  if (name == "sampling_seed") {
    int64_t seed = 0;
    PORTICO_RETURN_IF_ERROR(ReadInt64(name, value, {INT64_MIN, INT64_MAX}, &seed));
    options.seed = seed;
    return OkStatus();
  }
  if (std::find(std::begin(kSharedSampling), std::end(kSharedSampling), name) !=
      std::end(kSharedSampling)) {
    return ReadSharedField(name, value, draft, nullptr);
  }
  if (name == "custom_params" || name == "stop_regex") {
    return ReadExtraField(name, value, &options.extras);
  }
  Status status;
  const bool constrains =
      std::find(std::begin(kConstraints), std::end(kConstraints), name) != std::end(kConstraints);
  if (constrains && ReadConstraintField(name, value, &options, &status)) return status;
  for (const auto& [foreign, ours] : kForeignNames) {
    if (name != foreign) continue;
    return InvalidArgument(
        name, fmt::format("{} is not a sampling parameter; did you mean {}?", name, ours));
  }
  if (IsRefusedField(name, value, &status)) return status;
  return InvalidArgument(name, fmt::format("{:.48} is not a sampling parameter", name));
}

Status ReadSampling(Element map, NativeSampling* sampling) {
  GenerationDraft draft;
  draft.options = std::move(sampling->options);
  for (auto [name, value] : simdjson::dom::object(map)) {
    PORTICO_RETURN_IF_ERROR(ReadSamplingField(name, value, sampling, &draft));
  }
  sampling->options = std::move(draft.options);
  return OkStatus();
}

}  // namespace

bool IsSamplingName(std::string_view name) {
  constexpr std::string_view kOwn[] = {"max_new_tokens", "min_new_tokens", "sampling_seed"};
  const auto among = [name](const auto& names) {
    return std::find(std::begin(names), std::end(names), name) != std::end(names);
  };
  return among(kOwn) || among(kSharedSampling) ||
         std::any_of(std::begin(kForeignNames), std::end(kForeignNames),
                     [name](const auto& foreign) { return foreign.first == name; });
}

Status RefuseConstraint(std::string_view name, Element value) {
  GenerationOptions read;
  Status status;
  if (value.is_null() || !ReadConstraintField(name, value, &read, &status)) return OkStatus();
  if (status.ok() && read.constraint == nullptr) return OkStatus();
  return InvalidArgument(
      name, fmt::format("{} has no effect here: constrain the answer with {} in sampling_params",
                        name, fmt::join(kConstraints, ", ")));
}

Status ReadSamplingParams(std::string_view name, Element value, NativeGenerateRequest* request) {
  OneOrEach<NativeSampling>& out = request->sampling;
  if (value.is_object()) return ReadSampling(value, &out.values.emplace_back());
  simdjson::dom::array list;
  if (value.get(list)) return WrongValue(name, "an object or a list of objects", value);
  PORTICO_RETURN_IF_ERROR(CheckMembers(name, list.size(), kMaxNativePrompts, "values"));
  out.is_list = true;
  for (Element item : list) {
    const std::string place = fmt::format("{}[{}]", name, out.values.size());
    NativeSampling& sampling = out.values.emplace_back();
    if (item.is_null()) continue;
    if (!item.is_object()) return WrongValueAt(name, place, "an object", item);
    PORTICO_RETURN_IF_ERROR(ReadSampling(item, &sampling));
  }
  return OkStatus();
}

}  // namespace portico::api::sglang
