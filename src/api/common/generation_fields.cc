#include "api/common/generation_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "api/common/constraint_fields.h"
#include "api/common/extra_fields.h"
#include "api/common/refused_fields.h"

namespace portico::api {
namespace {

Status ReadStop(std::string_view name, Element value, GenerationDraft* draft) {
  constexpr std::string_view kExpected = "a string or a list of at most 32 strings";
  std::vector<std::string> stops;
  simdjson::dom::array list;
  std::string_view one;
  if (!value.get(one)) {
    stops.emplace_back(one);
  } else if (!value.get(list)) {
    PORTICO_RETURN_IF_ERROR(CheckMembers(name, list.size(), kMaxStops, "strings"));
    for (Element item : list) {
      if (item.get(one)) {
        return WrongValueAt(name, fmt::format("stop[{}]", stops.size()), "a string", item);
      }
      stops.emplace_back(one);
    }
  } else {
    return WrongValue(name, kExpected, value);
  }
  for (const std::string& stop : stops) {
    if (stop.empty()) return InvalidArgument(name, "stop strings must not be empty");
  }
  draft->options.stop = std::move(stops);
  return OkStatus();
}

Status ReadStopTokenIds(std::string_view name, Element value, GenerationDraft* draft) {
  PORTICO_RETURN_IF_ERROR(ExpectList(name, value));
  const simdjson::dom::array list(value);
  PORTICO_RETURN_IF_ERROR(CheckMembers(name, list.size(), kMaxStopTokenIds, "token ids"));
  size_t i = 0;
  for (Element item : list) {
    const size_t at = i++;
    if (item.is_null()) continue;  // SGLang drops nulls
    TokenId id = 0;
    PORTICO_RETURN_IF_ERROR(ReadTokenId(name, fmt::format("stop_token_ids[{}]", at), item, &id));
    draft->options.stop_token_ids.push_back(id);
  }
  return OkStatus();
}

Status ReadLogitBias(std::string_view name, Element value, GenerationDraft* draft) {
  PORTICO_RETURN_IF_ERROR(ExpectObject(name, value));
  const simdjson::dom::object members(value);
  PORTICO_RETURN_IF_ERROR(CheckMembers(name, members.size(), kMaxLogitBiases, "token ids"));
  std::map<TokenId, float> biases;  // the last of doubled ids wins
  for (auto [key, item] : members) {
    TokenId id = -1;
    auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0) {
      return InvalidArgument(name, fmt::format("logit_bias: {:.48} is not a token id", key));
    }
    double bias = 0;
    if (!item.is_number() || item.get(bias) || !kLogitBiasRange.Holds(bias)) {
      return WrongValueAt(name, fmt::format("logit_bias[\"{}\"]", key), kLogitBiasRange.text, item);
    }
    biases[id] = static_cast<float>(bias);
  }
  draft->options.logit_bias.assign(biases.begin(), biases.end());
  return OkStatus();
}

Status ReadStreamOptions(std::string_view name, Element value, GenerationDraft* draft) {
  PORTICO_RETURN_IF_ERROR(ExpectObject(name, value));
  draft->has_stream_options = true;
  for (auto [key, item] : simdjson::dom::object(value)) {
    bool* out = key == "include_usage"            ? &draft->options.include_usage
                : key == "continuous_usage_stats" ? &draft->options.continuous_usage_stats
                                                  : nullptr;
    if (!out || item.is_null()) continue;
    if (item.get(*out)) {
      return WrongValueAt(name, fmt::format("stream_options.{}", key), "true or false", item);
    }
  }
  return OkStatus();
}

Status ReadRid(std::string_view name, Element value, GenerationDraft* draft) {
  return ReadRequestName(name, value, &draft->options.rid);
}

Status ReadPriority(std::string_view name, Element value, GenerationDraft* draft) {
  return ReadInt32(name, value, {-kMaxInt32, kMaxInt32}, &draft->options.priority);
}

Status ReadTopK(std::string_view name, Element value, GenerationDraft* draft) {
  int64_t number = 0;
  Status status = ReadInt64(name, value, {-1, kMaxInt32}, &number);
  if (!status.ok() || number == 0) {
    return WrongValue(name, kTopKText, value);
  }
  draft->options.top_k = static_cast<int32_t>(number);
  return OkStatus();
}

Status ReadSeed(std::string_view name, Element value, GenerationDraft* draft) {
  int64_t seed = 0;
  PORTICO_RETURN_IF_ERROR(ReadInt64(name, value, {INT64_MIN, INT64_MAX}, &seed));
  draft->options.seed = seed;
  return OkStatus();
}

// What has no effect here, but must be of its type.
Status CheckIsString(std::string_view name, Element value, GenerationDraft*) {
  return value.is_string() ? OkStatus() : WrongValue(name, "a string", value);
}

Status CheckMetadata(std::string_view name, Element value, GenerationDraft*) {
  return ExpectObject(name, value);
}

// Its members would be dropped without a word.
Status RefuseSamplingParams(std::string_view name, Element value, GenerationDraft*) {
  simdjson::dom::object members;
  if (!value.get(members) && members.size() == 0) return OkStatus();
  return InvalidArgument(name,
                         "sampling_params is a field of /generate: here its members are fields of "
                         "the body, under OpenAI's names (max_tokens, min_tokens, seed)");
}

template <bool GenerationOptions::* kMember>
Status ReadFlag(std::string_view name, Element value, GenerationDraft* draft) {
  return ReadBool(name, value, &(draft->options.*kMember));
}

template <std::string GenerationOptions::* kMember>
Status ReadText(std::string_view name, Element value, GenerationDraft* draft) {
  return ReadString(name, value, &(draft->options.*kMember));
}

template <auto kMember, int64_t kMin, int64_t kMax>
Status ReadCount(std::string_view name, Element value, GenerationDraft* draft) {
  return ReadInt32(name, value, {kMin, kMax}, &(draft->options.*kMember));
}

template <std::optional<float> GenerationOptions::* kMember, const NumberRange& kRange>
Status ReadFloat(std::string_view name, Element value, GenerationDraft* draft) {
  return ReadNumber(name, value, kRange, &(draft->options.*kMember));
}

using Options = GenerationOptions;

constexpr FieldReader<GenerationDraft> kShared[] = {
    {"frequency_penalty", ReadFloat<&Options::frequency_penalty, kPenaltyRange>},
    {"ignore_eos", ReadFlag<&Options::ignore_eos>},
    {"logit_bias", ReadLogitBias},
    {"metadata", CheckMetadata},
    {"min_p", ReadFloat<&Options::min_p, kMinPRange>},
    {"min_tokens", ReadCount<&Options::min_tokens, 0, kMaxInt32>},
    {"model", ReadText<&Options::model>},
    {"n", ReadCount<&Options::n, kChoices.min, kChoices.max>},
    {"no_stop_trim", ReadFlag<&Options::no_stop_trim>},
    {"presence_penalty", ReadFloat<&Options::presence_penalty, kPenaltyRange>},
    {"priority", ReadPriority},
    {"prompt_cache_key", CheckIsString},
    {"repetition_penalty", ReadFloat<&Options::repetition_penalty, kRepetitionRange>},
    {"return_token_ids", ReadFlag<&Options::return_token_ids>},
    {"rid", ReadRid},
    {"safety_identifier", CheckIsString},
    {"sampling_params", RefuseSamplingParams},
    {"seed", ReadSeed},
    {"skip_special_tokens", ReadFlag<&Options::skip_special_tokens>},
    {"stop", ReadStop},
    {"stop_token_ids", ReadStopTokenIds},
    {"stream", ReadFlag<&Options::stream>},
    {"stream_options", ReadStreamOptions},
    {"temperature", ReadFloat<&Options::temperature, kTemperatureRange>},
    {"top_k", ReadTopK},
    {"top_p", ReadFloat<&Options::top_p, kTopPRange>},
    {"user", ReadText<&Options::user>},
};
static_assert(IsSortedByName(kShared));

}  // namespace

Status ReadSharedField(std::string_view name, Element value, GenerationDraft* draft,
                       std::vector<std::string>* unknown_fields) {
  if (const auto* reader = FindReader(kShared, name)) return reader->read(name, value, draft);
  if (IsExtraField(name)) return ReadExtraField(name, value, &draft->options.extras);
  Status status;
  if (ReadConstraintField(name, value, &draft->options, &status)) return status;
  return RefuseOrNote(name, value, unknown_fields);
}

Status CheckLeftOut(const std::vector<LeftOutMember>& left_out) {
  struct Limit {
    std::string_view name;
    char kind;
    size_t most;
    std::string_view things;
  };
  constexpr Limit kLimits[] = {
      {"logit_bias", '{', kMaxLogitBiases, "token ids"},
      {"stop", '[', kMaxStops, "strings"},
      {"stop_token_ids", '[', kMaxStopTokenIds, "token ids"},
  };
  for (const LeftOutMember& member : left_out) {
    for (const Limit& limit : kLimits) {
      if (member.name != limit.name || member.kind != limit.kind) continue;
      PORTICO_RETURN_IF_ERROR(CheckMembers(member.name, member.items, limit.most, limit.things));
    }
  }
  return OkStatus();
}

Status CheckGeneration(const GenerationDraft& draft) {
  if (draft.has_stream_options && !draft.options.stream) {
    return InvalidArgument("stream_options", "stream_options is allowed only with stream: true");
  }
  return OkStatus();
}

}  // namespace portico::api
