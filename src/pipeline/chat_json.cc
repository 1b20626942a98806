#include "pipeline/chat_json.h"

#include <string>
#include <string_view>
#include <utility>

namespace portico::pipeline {

Json SamplingJson(const GenerationOptions& options) {
  Json json(JsonObject{});
  const auto number = [&json](std::string_view name, const std::optional<float>& value) {
    if (value) json.Set(name, static_cast<double>(*value));
  };
  const auto integer = [&json](std::string_view name, const auto& value) {
    if (value) json.Set(name, static_cast<int64_t>(*value));
  };
  number("temperature", options.temperature);
  number("top_p", options.top_p);
  number("min_p", options.min_p);
  number("frequency_penalty", options.frequency_penalty);
  number("presence_penalty", options.presence_penalty);
  number("repetition_penalty", options.repetition_penalty);
  integer("top_k", options.top_k);
  integer("seed", options.seed);
  integer("max_tokens", options.max_tokens);
  if (!options.stop.empty()) {
    JsonArray stops;
    for (const std::string& stop : options.stop) stops.push_back(Json(stop));
    json.Set("stop", Json(std::move(stops)));
  }
  return json;
}

Json ToolChoiceJson(const ToolChoice& choice) {
  if (choice.mode == ToolChoice::Mode::kNone) return "none";
  if (choice.mode == ToolChoice::Mode::kAuto) return "auto";
  if (choice.name.empty()) return "required";
  return Json(
      JsonObject{{"type", "function"}, {"function", Json(JsonObject{{"name", choice.name}})}});
}

}  // namespace portico::pipeline
