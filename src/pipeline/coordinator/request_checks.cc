// What the fields of a request may be, by the stages that it needs.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/coordinator/pipeline.h"

namespace portico::pipeline {

namespace {

// A recognizer that does not sample hears as at a temperature of 0, OpenAI's default.
bool AsksForNoSampling(const Request& request) {
  const JsonObject& sampling = request.sampling.as_object();
  return std::all_of(sampling.begin(), sampling.end(), [&request](const auto& member) {
    return request.task == Task::kTranscription && member.first == "temperature" &&
           member.second.as_double() == 0;
  });
}

}  // namespace

Status Pipeline::CheckStageFields(const Request& request) const {
  if (request.stage_params.is_object()) PORTICO_RETURN_IF_ERROR(CheckStageParams(request));
  if (!request.references.empty() || !request.speech_fields.is_null()) {
    PORTICO_RETURN_IF_ERROR(CheckSpeechFields(request));
  }
  if (request.stage_sampling.is_null() && request.sampling.is_null()) return OkStatus();
  return CheckSampling(request);
}

Status Pipeline::CheckStageParams(const Request& request) const {
  const std::vector<std::string> reached = StagesOf(request.task);
  for (const auto& [name, params] : request.stage_params.as_object()) {
    const auto bad = [&stage_name = name](std::string_view why) {
      return InvalidArgument("stage_params", fmt::format("stage_params: stage `{}` {}",
                                                         stage_name.substr(0, 64), why));
    };
    const Stage* stage = FindStage(name);
    if (stage == nullptr) return bad("does not exist");
    if (!params.is_object()) return bad("needs an object");
    for (const auto& [param, value] : params.as_object()) {
      if (stage->TakesParam(param)) continue;
      return bad(fmt::format("has no parameter `{}`", param.substr(0, 64)));
    }
    if (params.as_object().empty()) continue;
    if (std::find(reached.begin(), reached.end(), name) == reached.end()) {
      return bad(fmt::format("has no part in a {}", TaskName(request.task)));
    }
    // Also where this request goes another way.
    const Status fits = stage->Check(request);
    if (FieldOf(fits) == "stage_params") return fits;
  }
  return OkStatus();
}

Status Pipeline::CheckSampling(const Request& request) const {
  const std::vector<std::string> reached = StagesOf(request.task);
  if (request.stage_sampling.is_object()) {
    for (const auto& [name, params] : request.stage_sampling.as_object()) {
      const auto bad = [&stage_name = name](std::string_view why) {
        return InvalidArgument("stage_sampling", fmt::format("stage_sampling: stage `{}` {}",
                                                             stage_name.substr(0, 64), why));
      };
      const Stage* stage = FindStage(name);
      if (stage == nullptr) return bad("does not exist");
      if (!stage->samples()) return bad("does not sample");
      if (std::find(reached.begin(), reached.end(), name) == reached.end()) {
        return bad(fmt::format("has no part in a {}", TaskName(request.task)));
      }
    }
  }
  if (!request.sampling.is_object() || AsksForNoSampling(request)) return OkStatus();
  const bool sampled = std::any_of(reached.begin(), reached.end(), [this](const std::string& name) {
    return FindStage(name)->samples();
  });
  if (sampled) return OkStatus();
  const std::string& field = request.sampling.as_object().front().first;
  return InvalidArgument(field, fmt::format("{}: no stage of this pipeline supports it", field));
}

Status Pipeline::CheckSpeechFields(const Request& request) const {
  const std::vector<std::string> reached = StagesOf(request);
  const auto check = [&](std::string_view taken, std::string_view field) {
    if (AnyTakes(reached, taken)) return OkStatus();
    return InvalidArgument(field, fmt::format("{}: no stage of this pipeline supports it", field));
  };
  for (const VoiceReference& reference : request.references) {
    PORTICO_RETURN_IF_ERROR(check(reference.kind(), reference.field));
    if (reference.kind() == "references" || reference.text.empty()) continue;
    PORTICO_RETURN_IF_ERROR(
        check("ref_text", reference.field == "ref_audio" ? "ref_text" : reference.field));
  }
  if (!request.speech_fields.is_object()) return OkStatus();
  for (const auto& [name, value] : request.speech_fields.as_object()) {
    PORTICO_RETURN_IF_ERROR(check(name, name));
  }
  return OkStatus();
}

}  // namespace portico::pipeline
