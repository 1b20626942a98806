// Which formats a model's output has, told by its chat template and vocabulary: SGLang 0.5.23's `auto`
// (sglang/srt/parser/template_detection.py), rule by rule and in its order.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace portico::parser {

// What the rules ask of a vocabulary.
struct DetectionVocabulary {
  // Whether there is such a token; null: no vocabulary is known, and there is none.
  std::function<bool(std::string_view)> has;
  // Tokens that begin with '<': some checkpoints add a suffix of their own to their markers.
  std::vector<std::string> markers;
};

// How the template's user switches reasoning on and off.
struct ReasoningMode {
  std::string parameter;        // of chat_template_kwargs; or empty
  std::optional<bool> enabled;  // what it is where a request says nothing
  std::string special;          // "always", "mistral", "hunyuan_effort" or empty
  std::string effort;           // another parameter that means little reasoning, or empty

  friend bool operator==(const ReasoningMode&, const ReasoningMode&) = default;
};

struct DetectedFormat {
  std::string tool_parser;       // a name of FindToolFamily(), or empty
  std::string reasoning_parser;  // a name of FindReasoning(), or empty
  std::optional<ReasoningMode> mode;
};

// Thread-safe. `chat_template`: its source.
DetectedFormat DetectFormat(std::string_view chat_template, const DetectionVocabulary& vocabulary);
// For a model without a template: by the architecture and model type of its config.json.
DetectedFormat DetectFormatByArchitecture(std::string_view architecture,
                                          std::string_view model_type);

// A tool parser that the template's own calls look like, where DetectFormat() has none: for a warning, since SGLang's rules
// leave such calls in the text. "" where the template writes none, or in a format of its own.
std::string SuggestToolParser(std::string_view chat_template);

}  // namespace portico::parser
