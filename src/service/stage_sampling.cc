#include "service/stage_sampling.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace portico {
namespace {

void Replace(const std::map<std::string, std::string>& heard, Json* value) {
  if (value->is_string()) {
    std::string& text = value->as_string();
    for (const auto& [mark, words] : heard) {
      const size_t at = text.find(mark);
      if (at != std::string::npos) text.replace(at, mark.size(), words);
    }
  } else if (value->is_array()) {
    for (Json& item : value->as_array()) Replace(heard, &item);
  } else if (value->is_object()) {
    for (auto& [name, member] : value->as_object()) Replace(heard, &member);
  }
}

}  // namespace

void SetStageSampling(const pipeline::Request& request, std::string_view stage,
                      GenerationOptions* options) {
  const auto number = [&](std::string_view name, auto set) {
    const Json* value = request.Sampling(stage, name);
    if (value != nullptr) set(*value);
  };
  number("temperature",
         [&](const Json& v) { options->temperature = static_cast<float>(v.as_double()); });
  number("top_p", [&](const Json& v) { options->top_p = static_cast<float>(v.as_double()); });
  number("min_p", [&](const Json& v) { options->min_p = static_cast<float>(v.as_double()); });
  number("repetition_penalty",
         [&](const Json& v) { options->repetition_penalty = static_cast<float>(v.as_double()); });
  number("top_k", [&](const Json& v) { options->top_k = static_cast<int32_t>(v.as_int()); });
  number("seed", [&](const Json& v) { options->seed = v.as_int(); });
  number("max_new_tokens", [&](const Json& v) { options->max_tokens = v.as_int(); });
  number("stop", [&](const Json& v) {
    options->stop.clear();
    for (const Json& stop : v.as_array()) options->stop.push_back(stop.as_string());
  });
}

Status AddHeard(const pipeline::HeardPart& part, const pipeline::Request& request,
                std::map<std::string, std::string>* heard) {
  const std::vector<std::string>& marks = request.clip_marks;
  if (marks.empty()) return OkStatus();
  if (part.clip < 0 || static_cast<size_t>(part.clip) >= marks.size()) {
    return Error(StatusCode::kInternal,
                 fmt::format("a stage transcribed audio {} of a chat with {}",
                             part.clip + int64_t{1}, marks.size()));
  }
  std::string& text = (*heard)[marks[static_cast<size_t>(part.clip)]];
  if (!text.empty()) text += ' ';
  text += part.text;
  return OkStatus();
}

Status PutHeard(const std::map<std::string, std::string>& heard, const pipeline::Request& request,
                Json* messages) {
  for (const std::string& mark : request.clip_marks) {
    const auto words = heard.find(mark);
    if (words == heard.end() || words->second.empty()) {
      return InvalidArgument("messages", "no speech was recognized in the audio");
    }
  }
  Replace(heard, messages);
  return OkStatus();
}

}  // namespace portico
