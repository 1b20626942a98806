#include "pipeline/stages/manner.h"

#include <algorithm>
#include <iterator>

namespace portico::pipeline {

Status CheckManner(const Request& request, bool english) {
  if (request.task != Task::kSpeech) return OkStatus();
  if (!request.instructions.empty()) {
    return InvalidArgument("instructions", "instructions: no stage of this pipeline can honour it");
  }
  constexpr std::string_view kEnglish[] = {"en", "en-US", "English", "english"};
  const std::string& language = request.language;
  if (language.empty() || language == "Auto" || language == "auto") return OkStatus();
  const bool is_english =
      std::find(std::begin(kEnglish), std::end(kEnglish), language) != std::end(kEnglish);
  if (english && is_english) return OkStatus();
  return InvalidArgument("language",
                         english ? "language: the voice speaks English; configure a stage that "
                                   "speaks the language (docs/omni.md)"
                                 : "language: choose the language by its voice");
}

}  // namespace portico::pipeline
