#include "api/openai/audio/chat_stage_fields.h"

#include <fmt/format.h>

#include <utility>

#include "message/sampling_ranges.h"

namespace portico::api::openai {
namespace {

constexpr NumberRange kTopK{-1, 1 << 20, false, "-1 (all tokens) or an integer from 1 to 1048576"};
constexpr NumberRange kSeed{-9e15, 9e15, false, "an integer"};
constexpr NumberRange kNewTokens{1, 1 << 24, false, "an integer from 1 to 16777216"};

struct Parameter {
  std::string_view name;
  const NumberRange& range;
  bool integer;
};

// Those of sglang-omni's SamplingParams that are numbers.
constexpr Parameter kParameters[] = {
    {"temperature", kTemperatureRange, false},
    {"top_p", kTopPRange, false},
    {"top_k", kTopK, true},
    {"min_p", kMinPRange, false},
    {"repetition_penalty", kRepetitionRange, false},
    {"seed", kSeed, true},
    {"max_new_tokens", kNewTokens, true},
};

constexpr std::string_view kTalker = "talker_";

Status Bad(std::string_view field, std::string why) {
  return InvalidArgument(field, fmt::format("{}: {}", field, why));
}

// A text or a list of texts.
StatusOr<Json> Stops(std::string_view field, const Json& value) {
  if (value.is_string()) return Json(JsonArray{value});
  bool texts = value.is_array() && value.as_array().size() <= 16;
  for (size_t i = 0; texts && i < value.as_array().size(); ++i) {
    texts = value.as_array()[i].is_string();
  }
  if (!texts) return Bad(field, "stop must be a text or a list of at most 16");
  return value;
}

Status ReadSampling(Json by_stage, pipeline::Request* request) {
  constexpr std::string_view kField = "stage_sampling";
  if (!by_stage.is_object()) return Bad(kField, "must be an object by stage");
  for (auto& [stage, params] : by_stage.as_object()) {
    if (!params.is_object()) {
      return Bad(kField, fmt::format("stage `{}` needs an object", stage.substr(0, 64)));
    }
    std::erase_if(params.as_object(), [](const auto& member) { return member.second.is_null(); });
    for (auto& member : params.as_object()) {
      if (member.first == "stop") {
        PORTICO_ASSIGN_OR_RETURN(member.second, Stops(kField, member.second));
      } else {
        PORTICO_RETURN_IF_ERROR(CheckSamplingNumber(kField, member.first, member.second));
      }
    }
  }
  request->stage_sampling = std::move(by_stage);
  return OkStatus();
}

// The stage that models of this kind call their talker.
std::string_view TalkerOf(const pipeline::Pipeline& pipeline) {
  for (const std::string_view name : {"talker", "talker_ar"}) {
    if (pipeline.config().Find(name) != nullptr) return name;
  }
  return {};
}

Status ReadTalker(const pipeline::Pipeline& pipeline, std::string_view field, Json value,
                  pipeline::Request* request) {
  if (value.is_null()) return OkStatus();
  PORTICO_RETURN_IF_ERROR(CheckSamplingNumber(field, field.substr(kTalker.size()), value));
  const std::string_view talker = TalkerOf(pipeline);
  if (talker.empty()) return Bad(field, "this pipeline has no stage `talker`");
  if (!pipeline.samples(talker)) {
    return Bad(field, fmt::format("stage `{}` does not sample", talker));
  }
  if (request->stage_sampling.is_null()) request->stage_sampling = Json(JsonObject{});
  Json* of_stage = request->stage_sampling.Find(talker);
  if (of_stage == nullptr) {
    request->stage_sampling.Set(talker, Json(JsonObject{}));
    of_stage = request->stage_sampling.Find(talker);
  }
  of_stage->Set(field.substr(kTalker.size()), std::move(value));
  return OkStatus();
}

}  // namespace

Status CheckSamplingNumber(std::string_view field, std::string_view name, const Json& value) {
  for (const Parameter& parameter : kParameters) {
    if (parameter.name != name) continue;
    const bool is = parameter.integer ? value.is_int() : value.is_number();
    const bool zero_top_k = &parameter.range == &kTopK && value == Json(0);
    if (is && parameter.range.Holds(value.as_double()) && !zero_top_k) return OkStatus();
    auto message = fmt::format("{} must be {}", name, parameter.range.text);
    return field == name ? InvalidArgument(field, message) : Bad(field, message);
  }
  return Bad(field, fmt::format("there is no sampling parameter `{}`", name.substr(0, 64)));
}

Json TakeMember(std::string_view name, Json* object) {
  Json value;
  std::erase_if(object->as_object(), [&](auto& member) {
    if (member.first != name) return false;
    value = std::move(member.second);
    return true;
  });
  return value;
}

Status TakeStageFields(const pipeline::Pipeline& pipeline, Json* body, pipeline::Request* request) {
  request->stage_params = TakeMember("stage_params", body);
  if (!request->stage_params.is_null() && !request->stage_params.is_object()) {
    return InvalidArgument("stage_params", "stage_params must be an object by stage");
  }
  Json sampling = TakeMember("stage_sampling", body);
  if (!sampling.is_null()) PORTICO_RETURN_IF_ERROR(ReadSampling(std::move(sampling), request));
  JsonObject talker;
  std::erase_if(body->as_object(), [&talker](auto& member) {
    if (!member.first.starts_with(kTalker)) return false;
    talker.push_back(std::move(member));
    return true;
  });
  for (auto& [name, value] : talker) {
    PORTICO_RETURN_IF_ERROR(ReadTalker(pipeline, name, std::move(value), request));
  }
  return OkStatus();
}

}  // namespace portico::api::openai
