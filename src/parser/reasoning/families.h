// How models mark what they say to themselves, by every name that SGLang, vLLM and smg give it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parser/reasoning/reasoning_splitter.h"

namespace portico::parser {

struct ReasoningChoice {
  std::string name;        // the first of its names
  bool harmony = false;    // HarmonyParser reads it
  bool muse = false;       // the channels of Muse
  bool by_effort = false;  // K2 Horizon: the markers go by reasoning_effort
  // Whether an answer begins inside where neither template nor prompt says so.
  bool inside = false;
  std::shared_ptr<const ReasoningSplitter::Compiled> splitter;  // null if harmony
  std::vector<std::string> markers;
  std::vector<std::string> calls;  // of the markers, those that begin calls, which end reasoning
};

// Null for a name that nobody gives a format.
const ReasoningChoice* FindReasoning(std::string_view name);
// All names, sorted.
std::span<const std::string> ReasoningNames();

}  // namespace portico::parser
