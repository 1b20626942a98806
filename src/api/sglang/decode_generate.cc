#include "api/sglang/decode_generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "api/openai/field_reader.h"
#include "api/openai/generation_fields.h"
#include "api/openai/refused_fields.h"

namespace portico::api::sglang {
namespace {

using openai::Element;
using openai::FieldReader;
using openai::IntRange;
using openai::kMaxInt32;
using openai::WrongValue;
using openai::WrongValueAt;
using Request = NativeGenerateRequest;

constexpr size_t kMaxPrompts = 4096;

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

Status ReadMaxNewTokens(Element value, NativeSampling* sampling) {
  sampling->default_limit = false;
  sampling->options.max_tokens_field = "max_new_tokens";
  sampling->options.max_tokens.reset();  // null: whatever the context has room for
  if (value.is_null()) return OkStatus();
  return openai::ReadInt32("max_new_tokens", value, {0, kMaxInt32}, &sampling->options.max_tokens);
}

Status ReadSamplingField(std::string_view name, Element value, NativeSampling* sampling) {
  if (name == "max_new_tokens") return ReadMaxNewTokens(value, sampling);
  if (value.is_null()) return OkStatus();
  GenerationOptions& options = sampling->options;
  if (name == "min_new_tokens") {
    return openai::ReadInt32(name, value, {0, kMaxInt32}, &options.min_tokens);
  }
  if (name == "stream_interval") {
    return openai::ReadInt32(name, value, {1, kMaxInt32}, &sampling->stream_interval);
  }
  if (name == "sampling_seed") {
    int64_t seed = 0;
    PORTICO_RETURN_IF_ERROR(openai::ReadInt64(name, value, {INT64_MIN, INT64_MAX}, &seed));
    options.seed = seed;
    return OkStatus();
  }
  if (std::find(std::begin(kSharedSampling), std::end(kSharedSampling), name) !=
      std::end(kSharedSampling)) {
    openai::GenerationDraft draft;
    draft.options = std::move(options);
    const Status status = openai::ReadSharedField(name, value, &draft, nullptr);
    options = std::move(draft.options);
    return status;
  }
  Status status;
  if (openai::IsRefusedField(name, value, &status)) return status;
  return InvalidArgument(name, fmt::format("{:.48} is no sampling parameter", name));
}

Status ReadSampling(Element map, NativeSampling* sampling) {
  for (auto [name, value] : simdjson::dom::object(map)) {
    PORTICO_RETURN_IF_ERROR(ReadSamplingField(name, value, sampling));
  }
  return OkStatus();
}

Status ReadSamplingParams(std::string_view name, Element value, Request* request) {
  OneOrEach<NativeSampling>& out = request->sampling;
  if (value.is_object()) return ReadSampling(value, &out.values.emplace_back());
  simdjson::dom::array list;
  if (value.get(list)) return WrongValue(name, "an object or a list of objects", value);
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

Status ReadRid(std::string_view name, Element value, Request* request) {
  return openai::ReadOneOrEach(name, value, &request->rid, openai::ReadRequestName);
}

Status ReadReturnLogprob(std::string_view name, Element value, Request* request) {
  return openai::ReadOneOrEach(name, value, &request->return_logprob, openai::ReadBool);
}

template <OneOrEach<int32_t> Request::* kMember, int64_t kMin, int64_t kMax>
Status ReadCounts(std::string_view name, Element value, Request* request) {
  return openai::ReadOneOrEach(name, value, &(request->*kMember),
                               [](auto field, Element item, int32_t* out) {
                                 return openai::ReadInt32(field, item, IntRange{kMin, kMax}, out);
                               });
}

// Ids for all prompts, or a list of ids (or null) for each.
Status ReadTokenIdsLogprob(std::string_view name, Element value, Request* request) {
  auto& out = request->token_ids_logprob;
  simdjson::dom::array list;
  if (value.get(list)) return WrongValue(name, "a list of token ids or of such lists", value);
  if (list.size() == 0) return OkStatus();
  if ((*list.begin()).is_number()) {
    return openai::ReadTokenIds(name, std::string(name), value, &out.values.emplace_back());
  }
  out.is_list = true;
  for (Element item : list) {
    const std::string place = fmt::format("{}[{}]", name, out.values.size());
    std::vector<TokenId>& ids = out.values.emplace_back();
    if (item.is_null()) continue;
    if (!item.is_array()) return WrongValueAt(name, place, "a list of token ids", item);
    if (simdjson::dom::array(item).size() == 0) continue;
    PORTICO_RETURN_IF_ERROR(openai::ReadTokenIds(name, place, item, &ids));
  }
  return OkStatus();
}

Status StartPrompts(std::string_view name, Request* request) {
  if (!request->prompts.empty()) {
    return InvalidArgument(name, "give either text or input_ids, not both");
  }
  request->prompt_field = name;
  return OkStatus();
}

Status CheckBatch(std::string_view name, const simdjson::dom::array& items) {
  if (items.size() == 0) {
    return InvalidArgument(name, fmt::format("{} must not be an empty list", name));
  }
  if (items.size() <= kMaxPrompts) return OkStatus();
  return InvalidArgument(name, fmt::format("{} must hold at most {} prompts", name, kMaxPrompts));
}

Status ReadText(std::string_view name, Element value, Request* request) {
  PORTICO_RETURN_IF_ERROR(StartPrompts(name, request));
  if (!value.is_array()) {
    if (!value.is_string()) return WrongValue(name, "a string or a list of strings", value);
    return openai::ReadString(name, value, &request->prompts.emplace_back().text);
  }
  const simdjson::dom::array items(value);
  PORTICO_RETURN_IF_ERROR(CheckBatch(name, items));
  request->is_batch = true;
  for (Element item : items) {
    const std::string place = fmt::format("{}[{}]", name, request->prompts.size());
    std::string_view text;
    if (item.get(text)) return WrongValueAt(name, place, "a string", item);
    request->prompts.emplace_back().text = text;
  }
  return OkStatus();
}

Status ReadIds(std::string_view name, const std::string& place, Element list, Request* request) {
  CompletionRequest::Prompt& prompt = request->prompts.emplace_back();
  prompt.is_ids = true;
  return openai::ReadTokenIds(name, place, list, &prompt.ids);
}

Status ReadInputIds(std::string_view name, Element value, Request* request) {
  PORTICO_RETURN_IF_ERROR(StartPrompts(name, request));
  simdjson::dom::array items;
  if (value.get(items)) {
    return WrongValue(name, "a list of token ids or a list of lists of them", value);
  }
  if (items.size() == 0) return InvalidArgument(name, "input_ids must not be an empty list");
  if (!(*items.begin()).is_array()) return ReadIds(name, std::string(name), value, request);
  PORTICO_RETURN_IF_ERROR(CheckBatch(name, items));
  request->is_batch = true;
  for (Element item : items) {
    const std::string place = fmt::format("{}[{}]", name, request->prompts.size());
    if (!item.is_array()) return WrongValueAt(name, place, "a list of token ids", item);
    PORTICO_RETURN_IF_ERROR(ReadIds(name, place, item, request));
  }
  return OkStatus();
}

// Fields of the native body alone that cannot be honoured, or have no effect on the answer.
constexpr openai::RefusedField kRefusedNatively[] = {
    {"audio_data", "", openai::kPerPrompt},
    {"background", "false"},
    {"encoder_urls", "[]"},
    {"external_trace_header", "*"},
    {"image_data", "", openai::kPerPrompt},
    {"kv_router_hint", "*"},
    {"log_metrics", "*"},
    {"max_thinking_tokens", ""},
    {"multi_item_delimiter_indices", ""},
    {"no_logs", "*"},
    {"received_time", "*"},
    {"require_reasoning", "false"},
    {"return_entropy", "false"},
    {"return_flat_raw_top_logprobs", "false"},
    {"return_flat_raw_top_logprobs_b64", "false"},
    {"return_indexer_topk", "false"},
    {"return_sampling_mask", "false"},
    {"routing_key", "*"},
    {"video_data", "", openai::kPerPrompt},
};
static_assert(openai::IsSortedByName(kRefusedNatively));

constexpr FieldReader<Request> kFields[] = {
    {"input_ids", ReadInputIds},
    {"logprob_start_len", ReadCounts<&Request::logprob_start_len, -1, kMaxInt32>},
    {"model", openai::ReadText<Request, &Request::model>},
    {"return_logprob", ReadReturnLogprob},
    {"return_prompt_token_ids", openai::ReadFlag<Request, &Request::return_prompt_token_ids>},
    {"return_text_in_logprobs", openai::ReadFlag<Request, &Request::return_text_in_logprobs>},
    {"rid", ReadRid},
    {"sampling_params", ReadSamplingParams},
    {"stream", openai::ReadFlag<Request, &Request::stream>},
    {"text", ReadText},
    {"token_ids_logprob", ReadTokenIdsLogprob},
    {"top_logprobs_num", ReadCounts<&Request::top_logprobs_num, 0, 20>},
};
static_assert(openai::IsSortedByName(kFields));

}  // namespace

StatusOr<NativeGenerateRequest> DecodeGenerate(const std::string& body,
                                               simdjson::dom::parser& parser,
                                               std::vector<std::string>* unknown_fields) {
  NativeGenerateRequest request;
  PORTICO_RETURN_IF_ERROR(
      openai::ReadBody(body, parser, kFields, &request, [&](auto name, auto value) {
        Status status;
        if (openai::IsRefusedField(kRefusedNatively, name, value, &status)) return status;
        return openai::RefuseOrNote(name, value, unknown_fields);
      }));
  if (request.prompts.empty()) return InvalidArgument("text", "text or input_ids is required");
  return request;
}

}  // namespace portico::api::sglang
