#include "pipeline/stages/manner.h"

#include "absl/strings/match.h"

namespace portico::pipeline {

bool IsEnglish(std::string_view language) {
  const absl::string_view name(language.data(), language.size());
  return absl::EqualsIgnoreCase(name, "en") || absl::EqualsIgnoreCase(name, "english") ||
         absl::StartsWithIgnoreCase(name, "en-") || absl::StartsWithIgnoreCase(name, "en_");
}

Status CheckManner(const Request& request, bool english) {
  if (request.task != Task::kSpeech) return OkStatus();
  if (!request.instructions.empty()) {
    return InvalidArgument("instructions", "instructions: no stage of this pipeline supports it");
  }
  const std::string& language = request.language;
  if (language.empty() || language == "Auto" || language == "auto") return OkStatus();
  if (english && IsEnglish(language)) return OkStatus();
  return InvalidArgument("language",
                         english ? "language: the voice speaks English; configure a stage that "
                                   "speaks the language (docs/omni.md)"
                                 : "language: choose the language by its voice");
}

}  // namespace portico::pipeline
